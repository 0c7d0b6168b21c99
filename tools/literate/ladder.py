"""The pages of the kernel ladders, from their records and their sources.

A record (docs/measurements/ladders.json) is what `ladders --json FILE` wrote: for each rung its file,
its idea, and its counters, predicted and counted. Counters are {group: {unit: number}}, whatever
they count, so that ladders on other machines can have the same page. What the compiler said about
a rung's kernel comes from docs/measurements/kernel_resources.json, and the speeds from
docs/measurements/gpu_*.json, both where they are there.
"""
import html
import json
import re

from literate import page, plot, source
from literate.errors import ChapterError

RECORD, RESOURCES, GPUS = "ladders.json", "kernel_resources.json", "gpu_*.json"
SCHEMA = "decodelab-ladders-1"
MARK = "<!-- ladders: list -->"
INCLUDE = re.compile(r'^#include "(ladders/[\w/]+\.hpp)"', re.M)
LADDER_FOLDER = "kernels/"          # what "ladders/..." is included from
# Instructions of a kernel that a reader of its page looks for.
TELLING = ("HMMA", "LDSM", "LDGSTS", "IDP.4A", "LDG.128", "STG.128", "LDS.128", "STS.128", "SHFL",
           "BAR", "local")


def page_id(name):
    return f"ladder_{name}"


def flat(counters):
    """{(group, unit): number} of {group: {unit: number}}."""
    return {(group, unit): n for group, units in counters.items() for unit, n in units.items()}


def change(before, now):
    """How a counter changed: "÷ 32", "× 2", "=", or nothing where there is none to compare with."""
    if before == now:
        return "="
    if not before or not now:
        return ""
    factor = now / before
    return f"× {factor:.3g}" if factor > 1 else f"÷ {1 / factor:.3g}"


def row(cells, tag="td"):
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def table(head, rows, caption="", kind="ladder"):
    """`head`: the rows of the head, as markup; `rows`: lists of cells, as markup."""
    caption = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return (f'<div class="scroll" tabindex="0"><table class="data {kind}">{caption}'
            f"<thead>{''.join(head)}</thead><tbody>{''.join(row(cells) for cells in rows)}"
            "</tbody></table></div>")


class Ladders:
    """All that is recorded about the ladders of a repository."""

    def __init__(self, root):
        self.root = root
        folder = root / "docs" / "measurements"
        self.ladders, self.gpus, self.resources, self.compiler = [], [], {}, {}
        if not (folder / RECORD).exists():
            return
        record = json.loads((folder / RECORD).read_text())
        if record.get("schema") != SCHEMA:
            raise ChapterError(f"docs/measurements/{RECORD} is not a {SCHEMA}; run: ladders --json FILE")
        self.ladders = record["ladders"]
        if (folder / RESOURCES).exists():
            self.compiler = json.loads((folder / RESOURCES).read_text())
            for kernel in self.compiler["kernels"]:
                self.resources.setdefault(kernel["file"], []).append(kernel)
        for path in sorted(folder.glob(GPUS)):
            gpu = json.loads(path.read_text())
            if gpu.get("ladders"):
                self.gpus.append(gpu)

    def pages(self):
        """[(name, Markdown)] of every ladder."""
        return [(page_id(ladder["name"]), Page(self, ladder).markdown()) for ladder in self.ladders]

    def listing(self):
        """What stands in the place of MARK: the ladders, each with its page."""
        return "\n".join(f"- @subpage {page_id(l['name'])}\n  <br>{len(l['rungs'])} rungs: "
                         + ", ".join(rung["name"] for rung in l["rungs"]) for l in self.ladders)

    def timed(self, gpu, ladder):
        """{rung: its record on that GPU}, and the ladder's own record; empty where not measured."""
        for other in gpu["ladders"]["ladders"]:
            if other["name"] == ladder["name"]:
                return {rung["name"]: rung for rung in other["rungs"]}, other
        return {}, None


class Page:
    """Writes the page of one ladder."""

    QUESTION = "What will its warps ask for?"

    def __init__(self, ladders, ladder):
        self.all, self.ladder, self.rungs = ladders, ladder, ladder["rungs"]
        self.id = page_id(ladder["name"])
        used = [flat(rung["counted"]) for rung in self.rungs]
        self.columns = [key for key in used[0] if any(counters[key] for counters in used)]
        self.shown = set()      # headers whose code is on the page already

    def markdown(self):
        ladder = self.ladder
        size = ", ".join(f"{name} = {value}" for name, value in ladder["size"].items())
        out = [f"# Ladder: {ladder['name']} {{#{self.id}}}\n",
               page.raw(f"<p><code>{html.escape(ladder['formula'])}</code></p>"
                        f"<p>{html.escape(ladder['about'])}</p>"),
               "[TOC]\n", f"## All rungs {{#{self.id}_all}}\n", page.raw(self.overview(size)),
               page.raw(self.drawing(size)), page.raw(self.compiled()), page.raw(self.timed())]
        for number, rung in enumerate(self.rungs):
            out += self.rung(number, rung)
        return "\n".join(out)

    # ---------------------------------------------------------------- all rungs

    def head(self, first):
        """Two rows: the groups of counters, and their units."""
        groups = list(dict.fromkeys(group for group, _ in self.columns))
        top = "".join(f'<th colspan="{sum(g == group for g, _ in self.columns)}">'
                      f"{html.escape(group.replace('_', ' '))}s</th>" for group in groups)
        return [f'<tr><th rowspan="2">{first}</th>{top}</tr>',
                row([html.escape(unit) for _, unit in self.columns], "th")]

    def link(self, number, rung):
        return f'{number + 1} <a href="#{self.anchor(rung)}">{html.escape(rung["name"])}</a>'

    def anchor(self, rung):
        return f"{self.id}_{page.slug(rung['name'])}"

    def overview(self, size):
        head = self.head('rung</th><th rowspan="2">times the<br>least bytes')
        rows = []
        for number, rung in enumerate(self.rungs):
            counted = flat(rung["counted"])
            asked = 32 * sum(n for (_, unit), n in counted.items() if unit == "sectors")
            rows.append([self.link(number, rung), f"{asked / rung['least_bytes']:.2f}",
                         *(f"{counted[key]:,}" for key in self.columns)])
        return table(head, rows, f"What the warps ask of the memory system, counted at {size}")

    def drawing(self, size):
        lines = {}
        for group, unit in self.columns:
            if unit != "requests":
                values = [flat(rung["counted"])[group, unit] or None for rung in self.rungs]
                lines[f"{group.replace('_', ' ')} {unit}"] = values
        units = dict.fromkeys(unit for _, unit in self.columns if unit != "requests")
        series = {"x_label": "rung", "y_label": " or ".join(units),
                  "x": list(range(1, len(self.rungs) + 1)), "lines": lines}
        caption = f"From rung to rung, counted at {size}"
        return (f'<figure class="plot"><div class="scroll" tabindex="0">'
                f"{plot.svg(series, caption, 'logy', self.id + '_plot')}</div>"
                f"<figcaption>{html.escape(caption)}</figcaption></figure>")

    def kernels(self, rung):
        """What the compiler said about the kernels of a rung's file."""
        return self.all.resources.get(rung["file"], [])

    def compiled(self):
        if not self.all.resources:
            return "<p>What the compiler makes of it: not recorded yet.</p>"
        archs = sorted(key for key in next(iter(self.all.resources.values()))[0]
                       if key.startswith("sm_"))
        head = row(["rung", "registers", "spilled bytes", "shared bytes", "occupancy",
                    "instructions"], "th")
        rows = [[self.link(number, rung), *self.compiled_cells(kernel, archs)]
                for number, rung in enumerate(self.rungs) for kernel in self.kernels(rung)]
        counted = self.all.compiler["disassembler"]
        by = f"nvcc {self.all.compiler['nvcc']}" + (f" and {counted}" if counted else
                                                    "; instructions were not counted")
        return table([head], rows, f"What the compiler makes of it for {' and '.join(archs)} (both "
                                   f"where they differ; {by}). Instructions as they stand in the "
                                   "code, not as often as they run", "ladder compiled")

    @staticmethod
    def compiled_cells(kernel, archs):
        def cell(text_of):
            return " / ".join(dict.fromkeys(text_of(kernel[arch]) for arch in archs))

        def share(r):
            return "" if r["occupancy"] is None else f"{100 * r['occupancy']:.0f} %"

        def told(r):
            return ", ".join(f"{r['sass'][name]} {name}" for name in TELLING
                             if name in r.get("sass", {}))
        return [cell(lambda r: str(r["registers"])),
                cell(lambda r: str(r["spill_stores"] + r["spill_loads"])),
                cell(lambda r: f"{r['shared']:,}"), cell(share), cell(told)]

    def timed(self):
        """A table for each GPU; one empty table where none was measured."""
        out = []
        for gpu in self.all.gpus:
            rungs, record = self.all.timed(gpu, self.ladder)
            if not record:
                continue
            size = ", ".join(f"{name} = {value}" for name, value in record["size"].items())
            rows = [self.timed_cells(self.link(n, r), rungs.get(r["name"], {}))
                    for n, r in enumerate(self.rungs)]
            rows += [self.timed_cells(html.escape(peer["name"]), peer)
                     for peer in record.get("peers", [])]
            out.append(table([self.TIMED_HEAD], rows,
                             f"Time on {gpu['gpu']}, {gpu['date']}, at {size}; bandwidth measured: "
                             f"{record['bandwidth_gb_s']:.0f} GB/s"))
        if not out:
            rows = [self.timed_cells(self.link(n, r), {}) for n, r in enumerate(self.rungs)]
            out = [table([self.TIMED_HEAD], rows, "Time on a GPU: not measured yet; "
                                                  "tools/gpu_check.sh fills this table")]
        return "".join(out)

    TIMED_HEAD = row(["rung", "time, µs", "of the bandwidth", "of cuBLAS's speed"], "th")

    @staticmethod
    def timed_cells(first, rung):
        if "microseconds" not in rung:
            return [first, "", "", ""]
        peer = rung.get("peer_share")
        return [first, f"{rung['microseconds']:,.1f}", f"{100 * rung['bandwidth_share']:.1f} %",
                "" if peer is None else f"{100 * peer:.1f} %"]

    # ---------------------------------------------------------------- one rung

    def rung(self, number, rung):
        out = [f"## {number + 1} {rung['name']} {{#{self.anchor(rung)}}}\n",
               page.raw(f"<p>{html.escape(rung['idea'])}</p>")]
        files = self.files(self.all.root / rung["file"])
        out += self.regions(files, "kernel")
        out.append(page.raw(f'<div class="predict"><b>Predict</b><p>{self.QUESTION} '
                            "As a formula, and in numbers below:</p></div>"))
        out += self.regions(files, "prediction")
        out.append(page.raw(self.comparison(number, rung)))
        return out

    def files(self, path):
        """A rung's file, after the headers of the ladders that it includes and that no rung above
        did: what is to be shown of it."""
        found = []
        for name in INCLUDE.findall(path.read_text()):
            header = self.all.root / LADDER_FOLDER / name
            if header not in self.shown:
                self.shown.add(header)
                found += self.files(header)
        return [*found, path]

    def regions(self, files, name):
        """The regions of that name, each under the name of its file."""
        out = []
        for path in files:
            if f"// [region {name}]" in path.read_text():
                file = html.escape(str(path.relative_to(self.all.root)))
                out += [page.raw(f'<div class="shown">{file}</div>'),
                        page.listing(source.region(path, name)[0])]
        if not out:
            raise ChapterError(f"{files[-1].relative_to(self.all.root)} has no region '{name}', nor "
                               "has a header that it includes")
        return out

    def comparison(self, number, rung):
        predicted, counted = flat(rung["predicted"]), flat(rung["counted"])
        rows = [["predicted", *(f"{predicted[key]:,}" for key in self.columns)],
                ["counted", *(f"{counted[key]:,}" for key in self.columns)]]
        if number:
            before = flat(self.rungs[number - 1]["counted"])
            rows.append(["from the rung before",
                         *(change(before[key], counted[key]) for key in self.columns)])
        return table(self.head(""), rows)


def problems(root):
    """What is wrong with the records, one line each: a rung that is not as predicted, a file that
    is not there."""
    found = []
    for ladder in Ladders(root).ladders:
        for rung in ladder["rungs"]:
            if "wrong" in rung or rung["counted"] != rung["predicted"]:
                found.append(f"docs/measurements/{RECORD}: {rung['file']} is not as predicted")
            if not (root / rung["file"]).exists():
                found.append(f"docs/measurements/{RECORD}: it names {rung['file']}, which is not there")
    return found
