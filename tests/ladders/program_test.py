"""program_test.py LADDERS: the command line, and the committed record of the counters."""
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ladders.md"
RECORD = ROOT / "docs" / "measurements" / "ladders.json"
PROGRAM = None


def ladders(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class ProgramTest(unittest.TestCase):
    def test_the_record_is_current(self):
        done = ladders("--json", "-")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout), json.loads(RECORD.read_text()),
                         f"run: {PROGRAM} --json {RECORD.relative_to(ROOT)}")

    def test_the_page_on_attention_is_current(self):
        width, room = 64, 3 * 32 * 64       # head_dim; numbers in the tiles of 2_online.cu
        for tokens in (128, 256, 512):
            done = ladders("attention", "--size", f"{tokens},{tokens},{width}", "--json", "-")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            naive, online = (32 * sum(rung["counted"][kind]["sectors"]
                                      for kind in ("global_load", "global_store"))
                             for rung in json.loads(done.stdout)["ladders"][0]["rungs"][:2])
            row = (naive, 4 * 5 * tokens**2, 4 * (tokens * width + tokens**2), online,
                   4 * tokens**2 * width**2 / room)
            line = f"| {tokens} | " + " | ".join(f"{n / 1024:,.0f}" for n in row) + " |"
            self.assertIn(line, PAGE.read_text().splitlines())

    def test_table(self):
        done = ladders("gemv", "--size", "1,128,512")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("as predicted"), 6)
        self.assertNotIn("gemm", done.stdout)

    def test_sizes_of_no_tile_have_no_prediction(self):
        done = ladders("rms_norm", "--size", "3,1,60")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("predicted", done.stdout)

    def test_errors(self):
        for arguments, code, said in (
                (["nonsense"], 2, "there is no ladder 'nonsense'"),
                (["gemm", "--size", "3,5"], 2, "--size of gemm needs T,N,K"),
                (["softmax", "--size", "3,5,8"], 2, "--size of softmax needs T,1,K"),
                (["attention", "--size", "5,4,64"], 1, "N must be at least T"),
                (["gemm", "--size", "0,1,1"], 1, "must be at least 1"),
                (["gemv", "--size", "1,2,16", "--json", "/no/such/folder/x"], 1, "cannot be written"),
                (["--device", "tpu"], 2, "neither simt nor cuda"),
                (["--no-such-option"], 2, "no-such-option")):
            done = ladders(*arguments)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn(said, done.stderr)

    def test_without_a_gpu(self):
        done = ladders("gemv", "--device", "cuda", "--size", "1,128,512")
        self.assertIn(done.returncode, (0, 77), done.stderr)

    def test_help(self):
        done = ladders("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--device", "--size", "--json", "gemm", "77"):
            self.assertIn(word, done.stdout)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
