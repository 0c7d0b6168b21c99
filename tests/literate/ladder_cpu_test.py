"""The page of the CPU ladders: what is on it, and what stops it."""
import copy
import json
import pathlib
import tempfile
import unittest

from support import ROOT

from literate import ladder_cpu
from literate.errors import ChapterError

RUNG = """// [region kernel]
void kernel_{0}();
// [endregion]
// [region prediction]
int predict_{0}();
// [endregion]
"""


def record():
    rungs = [{"name": f"rung {n}", "file": f"kernels/ladders/cpu/{n}.cpp", "idea": f"idea <{n}>",
              "predicted": {"bytes": 4000 // n, "multiplies": 640},
              "counted": {"instructions": 6400 // n, "multiplies": 640, "bytes": 4200 // n,
                          "l1_misses": 70},
              "timed": {"microseconds": 12.5 / n, "gop_s": 2.0 * n, "gb_s": 1.0}} for n in (1, 2)]
    rungs.append({"name": "wide", "file": "kernels/ladders/cpu/2.cpp", "idea": "", "counted": None,
                  "predicted": {"bytes": 1, "multiplies": 2}, "skipped": "no such CPU"})
    size = {"T": 1, "N": 2, "K": 32}
    return {"schema": ladder_cpu.SCHEMA, "cpu": "CPU X", "date": "2026-01-02", "compiler": "C 1",
            "rounds": 3, "bandwidth_gb_s": 21.5, "ladders": [
                {"name": "gemv", "about": "About <it>.", "format": "Q4_0", "counted_size": size,
                 "timed_size": size, "rungs": rungs}]}


class LadderCpuTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs" / "measurements").mkdir(parents=True)
        sources = self.root / "kernels" / "ladders" / "cpu"
        sources.mkdir(parents=True)
        for n in (1, 2):
            (sources / f"{n}.cpp").write_text(RUNG.format(n))
        self.write(record())

    def write(self, content):
        (self.root / "docs" / "measurements" / ladder_cpu.RECORD).write_text(json.dumps(content))

    def test_what_is_on_it(self):
        text = ladder_cpu.CpuLadders(self.root).markdown()
        for part in ("## gemv {#ladder_cpu_gemv}", "### 2 rung 2 {#ladder_cpu_gemv_rung_2}", "CPU X",
                     "About &lt;it&gt;.", "idea &lt;1&gt;", "void kernel_1();", "int predict_2();",
                     "21.5 GB/s", "<td>6,400</td>", "÷ 2", "no such CPU",
                     "valgrind has no such instructions"):
            self.assertIn(part, text)
        self.assertNotIn("warps", text)

    def test_without_times_or_record(self):
        content = record()
        for rung in content["ladders"][0]["rungs"]:
            rung.pop("timed", None)
        self.write(content)
        self.assertIn("not measured yet", ladder_cpu.CpuLadders(self.root).markdown())
        self.write({"schema": "other"})
        with self.assertRaisesRegex(ChapterError, "is not a decodelab-ladders-cpu-1"):
            ladder_cpu.CpuLadders(self.root)
        (self.root / "docs" / "measurements" / ladder_cpu.RECORD).unlink()
        self.assertIn("Not recorded yet", ladder_cpu.CpuLadders(self.root).markdown())
        self.assertEqual(ladder_cpu.problems(self.root), [])

    def test_problems(self):
        self.assertEqual(ladder_cpu.problems(self.root), [])
        for change, said in ((lambda r: r["counted"].update(multiplies=800), "not as predicted"),
                             (lambda r: r["counted"].update(bytes=100), "reads less"),
                             (lambda r: r.update(wrong=0.5), "something else"),
                             (lambda r: r.update(file="kernels/x.cpp"), "there is no kernels/x.cpp")):
            content = copy.deepcopy(record())
            change(content["ladders"][0]["rungs"][0])
            self.write(content)
            problem, = ladder_cpu.problems(self.root)
            self.assertIn(said, problem)

    def test_the_real_ladders(self):
        text = ladder_cpu.CpuLadders(ROOT).markdown()
        self.assertEqual(text.count("<b>Predict</b>"), text.count("<td>predicted</td>"))
        self.assertEqual(ladder_cpu.problems(ROOT), [])


if __name__ == "__main__":
    unittest.main()
