"""The page "How to reach llama.cpp on a CPU", from the record of the CPU ladders and their sources.

The record (docs/measurements/ladders_cpu.json) is what tools/kernels/callgrind.py wrote: for each rung
its idea, what it was predicted to read and multiply, what valgrind counted, and its speed.
"""
import html
import json

from literate import ladder, page, plot
from literate.errors import ChapterError
from literate.ladder import change, row, table

RECORD, SCHEMA = "ladders_cpu.json", "decodelab-ladders-cpu-1"
MARK = "<!-- ladders: cpu -->"
COUNTERS = ("instructions", "multiplies", "bytes", "l1_misses")
HEADS = {"instructions": "instructions", "multiplies": "multiply<br>instructions",
         "bytes": "bytes<br>from memory", "l1_misses": "L1<br>misses"}


class CpuLadders:
    """What is recorded about the CPU ladders of a repository; nothing where there is no record."""

    def __init__(self, root):
        self.root, self.record = root, {"ladders": []}
        path = root / "docs" / "measurements" / RECORD
        if path.exists():
            self.record = json.loads(path.read_text())
            if self.record.get("schema") != SCHEMA:
                raise ChapterError(f"docs/measurements/{RECORD} is not a {SCHEMA}; run: "
                                   "tools/kernels/callgrind.py PROGRAM")

    def markdown(self):
        """What stands in the place of MARK: both ladders, or that they are not recorded."""
        if not self.record["ladders"]:
            return page.raw("<p>Not recorded yet: tools/kernels/callgrind.py writes the record.</p>")
        return "\n".join(Section(self, one).markdown() for one in self.record["ladders"])


class Section(ladder.Page):
    """Writes one of the ladders: a section of the page, with its rungs below."""

    QUESTION = "How many bytes of weights will it read, and how often multiply?"

    def __init__(self, ladders, one):
        self.all, self.ladder, self.rungs = ladders, one, one["rungs"]
        self.id, self.shown = f"ladder_cpu_{one['name']}", set()

    def markdown(self):
        one = self.ladder
        out = [f"## {one['name']} {{#{self.id}}}\n",
               page.raw(f"<p>{html.escape(one['about'])}</p>" + self.speeds() + self.drawing()
                        + self.counters())]
        for number, rung in enumerate(self.rungs):
            out += ["#" + line if line.startswith("## ") else line
                    for line in self.rung(number, rung)]
        return "\n".join(out)

    def size(self, which):
        sizes = ", ".join(f"{name} = {value}" for name, value in self.ladder[which].items())
        return f"{sizes}, {self.ladder['format']}"

    def counters(self):
        head = row(["rung", *(HEADS[name] for name in COUNTERS)], "th")
        rows = [[self.link(number, rung), *self.cells(rung["counted"])]
                for number, rung in enumerate(self.rungs)]
        return table([head], rows, "Counted by valgrind in one call, at " + self.size("counted_size"))

    @staticmethod
    def cells(counters):
        return ["" if counters is None or name not in counters else f"{counters[name]:,}"
                for name in COUNTERS]

    def speeds(self):
        record = self.all.record
        if not any("timed" in rung for rung in self.rungs):
            return "<p>Speeds: not measured yet.</p>"
        head = row(["rung", "time, µs", "GOP/s", "GB/s of weights", "faster than<br>the rung before",
                    "faster than<br>the first"], "th")
        rows, times = [], [rung.get("timed", {}).get("microseconds") for rung in self.rungs]
        for number, rung in enumerate(self.rungs):
            if times[number] is None:
                rows.append([self.link(number, rung), html.escape(rung.get("skipped", "")), "", "", "", ""])
                continue
            now = rung["timed"]
            rows.append([self.link(number, rung), f"{now['microseconds']:,.1f}", f"{now['gop_s']:.1f}",
                         f"{now['gb_s']:.2f}", self.gain(times[number - 1] if number else None, times[number]),
                         self.gain(times[0], times[number])])
        return table([head], rows, f"Speed at {self.size('timed_size')}: {record['cpu']}, one thread's processor time, "
                                   f"{record['date']}, {record['compiler']}; medians of "
                                   f"{record['rounds']} interleaved rounds; memory gives "
                                   f"{record['bandwidth_gb_s']:.1f} GB/s")

    @staticmethod
    def gain(before, now):
        return "" if not before else f"{before / now:.1f}"

    def drawing(self):
        lines = {"GOP/s": [rung.get("timed", {}).get("gop_s") for rung in self.rungs]}
        if not any(lines["GOP/s"]):
            return ""
        series = {"x_label": "rung", "y_label": "GOP/s", "lines": lines,
                  "x": list(range(1, len(self.rungs) + 1))}
        caption = f"From rung to rung, {self.size('timed_size')}"
        return (f'<figure class="plot"><div class="scroll" tabindex="0">'
                f"{plot.svg(series, caption, 'logy', self.id + '_plot')}</div>"
                f"<figcaption>{html.escape(caption)}</figcaption></figure>")

    def comparison(self, number, rung):
        head = row(["", *(HEADS[name] for name in COUNTERS)], "th")
        rows = [["predicted", *self.cells(rung["predicted"])]]
        if rung["counted"] is None:
            rows.append(["counted: valgrind has no such instructions", *self.cells(None)])
        else:
            rows.append(["counted", *self.cells(rung["counted"])])
        before = self.rungs[number - 1]["counted"] if number else None
        if before and rung["counted"]:
            rows.append(["from the rung before",
                         *(change(before[name], rung["counted"][name]) for name in COUNTERS)])
        return table([head], rows)


def problems(root):
    """What is wrong with the record, one line each: a prediction more than a tenth off, a rung that
    computed something else, a file that is not there. Bytes may be more: x and y are read as well."""
    found = []
    for one in CpuLadders(root).record["ladders"]:
        for rung in one["rungs"]:
            where = f"docs/measurements/{RECORD}: {one['name']}, {rung['name']}"
            if "wrong" in rung:
                found.append(f"{where} computed something else")
            counted, predicted = rung["counted"], rung["predicted"]
            if counted and abs(counted["multiplies"] - predicted["multiplies"]) > (
                    0.1 * predicted["multiplies"]):
                found.append(f"{where} is not as predicted")
            if counted and counted["bytes"] < 0.9 * predicted["bytes"]:
                found.append(f"{where} reads less than predicted")
            if not (root / rung["file"]).exists():
                found.append(f"{where}: there is no {rung['file']}")
    return found
