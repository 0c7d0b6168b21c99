"""The pages of the ladders: what is on them, where it comes from, and what stops them."""
import json
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree as xml

from support import ROOT

from literate import ladder
from literate.errors import ChapterError

HEADER = """// [region kernel]
int shared_by_rungs();
// [endregion]
"""
RUNG = """#include "ladders/demo/demo.hpp"
// [region kernel]
void kernel_{0}(float* a) {{ a[0] < 1; }}
// [endregion]
// [region prediction]
int predict_{0}();
// [endregion]
"""


def traffic(requests, sectors):
    return {"global_load": {"requests": requests, "sectors": sectors},
            "shared_load": {"requests": 0, "wavefronts": 0}}


def record():
    rungs = [{"name": f"rung {n}", "file": f"kernels/ladders/demo/{n}.cu", "idea": f"idea <{n}>",
              "least_bytes": 640, "predicted": traffic(*t), "counted": traffic(*t)}
             for n, t in ((1, (1000, 3200)), (2, (1000, 100)))]
    return {"schema": ladder.SCHEMA, "device": "simt",
            "ladders": [{"name": "demo", "formula": "y = x & w", "about": "About it.",
                         "size": {"T": 4, "N": 5, "K": 6}, "rungs": rungs}]}


class LadderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.measurements = self.root / "docs" / "measurements"
        self.measurements.mkdir(parents=True)
        self.sources = self.root / "kernels" / "ladders" / "demo"
        self.sources.mkdir(parents=True)
        (self.sources / "demo.hpp").write_text(HEADER)
        for n in (1, 2):
            (self.sources / f"{n}.cu").write_text(RUNG.format(n))
        self.write(ladder.RECORD, record())

    def write(self, name, content):
        (self.measurements / name).write_text(json.dumps(content))

    def page(self):
        (name, text), = ladder.Ladders(self.root).pages()
        self.assertEqual(name, "ladder_demo")
        return text

    def tables(self):
        """The rows of every table on the page: lists of texts, head first."""
        out = []
        for part in self.page().split("<table")[1:]:
            table = xml.fromstring("<table" + part.split("</table>")[0].replace("<br>", " ") + "</table>")
            out.append([["".join(cell.itertext()) for cell in line] for line in table.iter("tr")])
        return out

    def test_what_is_on_it(self):
        text = self.page()
        for part in ("# Ladder: demo {#ladder_demo}", "y = x &amp; w", "idea &lt;1&gt;", "a[0] < 1",
                     "## 2 rung 2 {#ladder_demo_rung_2}", "int predict_2();", "kernels/ladders/demo/2.cu",
                     "not measured yet", "not recorded yet"):
            self.assertIn(part, text)
        self.assertEqual(text.count("int shared_by_rungs();"), 1)
        self.assertNotIn("[region", text)

    def test_counters(self):
        overview, _, first, second = self.tables()
        self.assertEqual(overview[0], ["rung", "times the least bytes", "global loads"])
        self.assertEqual(overview[1], ["requests", "sectors"])      # nothing is shared: no column
        self.assertEqual(overview[2], ["1 rung 1", "160.00", "1,000", "3,200"])
        self.assertEqual(first[2:], [["predicted", "1,000", "3,200"], ["counted", "1,000", "3,200"]])
        self.assertEqual(second[4], ["from the rung before", "=", "÷ 32"])

    def test_other_counters_have_the_same_page(self):
        content = record()
        for rung in content["ladders"][0]["rungs"]:
            rung["predicted"] = rung["counted"] = {"cache": {"misses": 7}}
        self.write(ladder.RECORD, content)
        self.assertEqual(self.tables()[0][1:3], [["misses"], ["1 rung 1", "0.00", "7"]])

    def test_the_compiler(self):
        def arch(registers):
            return {"registers": registers, "spill_stores": 0, "spill_loads": 0, "shared": 8192,
                    "occupancy": 0.25, "sass": {"all": 90, "HMMA": 32, "FFMA": 3}}
        kernel = {"file": "kernels/ladders/demo/2.cu", "kernel": "k", "sm_80": arch(40), "sm_90": arch(38)}
        self.write(ladder.RESOURCES, {"nvcc": "13.0", "disassembler": None, "kernels": [kernel]})
        self.assertEqual(self.tables()[1][1:],
                         [["2 rung 2", "40 / 38", "0", "8,192", "25 %", "32 HMMA"]])
        self.assertIn("instructions were not counted", self.page())

    def test_a_gpu(self):
        timed = record()
        timed["ladders"][0] |= {"bandwidth_gb_s": 4000.4, "size": {"T": 40, "N": 50, "K": 60}, "peers": [
            {"name": "cuBLAS, f32", "microseconds": 1.0, "bandwidth_share": 0.9, "peer_share": 1.0}]}
        timed["ladders"][0]["rungs"][0] |= {"microseconds": 1234.56, "bandwidth_share": 0.125,
                                            "peer_share": 0.5}
        self.write("gpu_demo.json", {"gpu": "GPU X", "date": "2026-01-02", "ladders": timed})
        self.write("gpu_other.json", {"gpu": "GPU Y", "date": "2026-01-02", "ladders": None})
        self.assertEqual(self.tables()[1][1:], [["1 rung 1", "1,234.6", "12.5 %", "50.0 %"],
                                                ["2 rung 2", "", "", ""],
                                                ["cuBLAS, f32", "1.0", "90.0 %", "100.0 %"]])
        text = self.page()
        self.assertIn("Time on GPU X, 2026-01-02, at T = 40, N = 50, K = 60", text)
        self.assertNotIn("GPU Y", text)
        self.assertNotIn("not measured yet", text)

    def test_problems(self):
        self.assertEqual(ladder.problems(self.root), [])
        content = record()
        content["ladders"][0]["rungs"][1]["counted"]["global_load"]["sectors"] += 1
        self.write(ladder.RECORD, content)
        (self.sources / "1.cu").unlink()
        self.assertEqual(ladder.problems(self.root), [
            "docs/measurements/ladders.json: it names kernels/ladders/demo/1.cu, which is not there",
            "docs/measurements/ladders.json: kernels/ladders/demo/2.cu is not as predicted"])

    def test_what_stops_a_page(self):
        (self.sources / "2.cu").write_text("int no_regions;")
        with self.assertRaisesRegex(ChapterError, "demo/2.cu has no region 'kernel'"):
            self.page()
        self.write(ladder.RECORD, {"schema": "other"})
        with self.assertRaisesRegex(ChapterError, "is not a decodelab-ladders-1"):
            self.page()

    def test_without_a_record(self):
        (self.measurements / ladder.RECORD).unlink()
        self.assertEqual(ladder.Ladders(self.root).pages(), [])
        self.assertEqual(ladder.Ladders(self.root).listing(), "")

    def test_the_real_ladders(self):
        pages = dict(ladder.Ladders(ROOT).pages())
        self.assertEqual(list(pages), ["ladder_gemm", "ladder_rms_norm", "ladder_softmax", "ladder_gemv",
                                       "ladder_attention"])
        for text in pages.values():
            self.assertEqual(text.count("<b>Predict</b>"), text.count("<td>predicted</td>"))
        self.assertEqual(ladder.problems(ROOT), [])

    def test_change(self):
        for before, now, said in ((5, 5, "="), (32, 1, "÷ 32"), (4, 10, "× 2.5"), (0, 7, ""), (7, 0, "")):
            self.assertEqual(ladder.change(before, now), said)


if __name__ == "__main__":
    unittest.main()
