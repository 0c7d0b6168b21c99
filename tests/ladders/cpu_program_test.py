"""cpu_program_test.py LADDERS_CPU: the command line of ladders_cpu, and what valgrind counts of it."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from kernels import callgrind  # noqa: E402

PROGRAM = None
PROFILE = """version: 1
positions: instr line
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
ob=/p
fn=kernel
0x10 0 5 1 0 0 1 0 0 1 0
0x14 0 5
calls=1 0x30 0
0x18 0 90 9 0 0 9 0 0 9 0
0x18 0 5
ob=/other
fn=f
0x14 0 90
totals: 105 1 0 0 3 0 0 2 0
"""


def ladders(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class ProgramTest(unittest.TestCase):
    def test_a_small_climb(self):
        done = ladders("--size", "2,20,64", "--rounds", "1", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        record = json.loads(done.stdout)
        self.assertEqual([len(one["rungs"]) for one in record["ladders"]], [7, 8])
        for one in record["ladders"]:
            for rung in one["rungs"]:
                self.assertNotIn("wrong", rung)
                self.assertNotEqual("timed" in rung, "skipped" in rung)
                self.assertTrue((ROOT / rung["file"]).exists())

    def test_without_times(self):
        done = ladders("gemv", "--size", "1,20,64", "--rounds", "0", "--format", "Q8_0", "--rung", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("decode in the loop", done.stdout)
        self.assertNotIn("plain loops", done.stdout)

    def test_errors(self):
        for arguments, code, said in (
                (["nonsense"], 2, "there is no ladder 'nonsense'"),
                (["--format", "Q4_K"], 2, "--format Q4_K is neither"),
                (["--size", "3,5"], 2, "--size needs T,N,K"),
                (["--size", "1,1,33"], 1, "K a multiple of 32"),
                (["gemv", "--rung", "8"], 2, "gemv has no rung 8; it has 1 to 7"),
                (["--once"], 2, "--once needs one ladder and one rung"),
                (["--rounds", "-1"], 2, "must not be negative"),
                (["--rounds", "0", "--size", "1,1,32", "--json", "/no/folder/x"], 1, "cannot be written")):
            done = ladders(*arguments)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn(said, done.stderr)


class CallgrindTest(unittest.TestCase):
    def test_parse(self):
        rows, totals = callgrind.parse(PROFILE)
        names = {0x10: "vmovups", 0x14: "vfmadd231ps", 0x18: "pmaddwd"}
        self.assertEqual(callgrind.counted(rows, totals, "/p", names),
                         {"instructions": 105, "multiplies": 10, "bytes": 128, "l1_misses": 3})

    def test_what_multiplies(self):
        for name in ("mulss", "mulps", "vmulps", "vmulsd", "vfmadd231ps", "vfnmadd132ss", "vpmaddubsw",
                     "pmaddwd", "vpmulld", "vpdpbusd", "vdpbf16ps"):
            self.assertIsNotNone(callgrind.MULTIPLY.match(name), name)
        for name in ("imul", "addps", "vpaddd", "shufps", "cvtdq2ps", "mulx"):
            self.assertIsNone(callgrind.MULTIPLY.match(name), name)

    def test_times_are_kept(self):
        new = {"ladders": [{"name": "a", "rungs": [{"name": "r"}, {"name": "s"}]}], "cpu": "new"}
        old = {"ladders": [{"name": "a", "rungs": [{"name": "r", "timed": 1}]}], "cpu": "old"}
        kept = callgrind.with_times(new, old)
        self.assertEqual(kept["cpu"], "old")
        self.assertEqual(kept["ladders"][0]["rungs"], [{"name": "r", "timed": 1}, {"name": "s"}])

    @unittest.skipUnless(shutil.which("valgrind") and shutil.which("objdump"), "needs valgrind and objdump")
    def test_a_rung_is_counted(self):
        done = ladders("gemv", "--size", "1,64,256", "--rounds", "0", "--json", "-")
        rung = json.loads(done.stdout)["ladders"][0]["rungs"][3]
        counted = callgrind.count(PROGRAM, "gemv", 4, callgrind.mnemonics(PROGRAM),
                                  ["--size", "1,64,256"])
        self.assertGreater(counted["instructions"], 5 * counted["multiplies"])
        self.assertGreaterEqual(counted["multiplies"], 0.9 * rung["predicted"]["multiplies"])
        self.assertGreaterEqual(counted["bytes"], rung["predicted"]["bytes"])
        self.assertLess(counted["bytes"], 2 * rung["predicted"]["bytes"])


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
