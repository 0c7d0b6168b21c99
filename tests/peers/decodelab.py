"""Calls the decodelab program from the peer comparisons."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Decodelab:
    """One model, through the program's JSON interface."""

    def __init__(self, model, program=pathlib.Path(os.environ.get("DECODELAB", ROOT / "build/cpu/tools/decodelab/decodelab")), threads=2):
        self.program, self.model, self.threads = str(program), str(model), str(threads)

    def _run(self, command, *args, stdin=None):
        done = subprocess.run([self.program, command, *args, "--model", self.model],
                              input=stdin, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr.strip())
        return done.stdout

    def tokenize(self, texts):
        lines = "".join(json.dumps(t) + "\n" for t in texts)
        return [json.loads(x) for x in self._run("tokenize", stdin=lines).splitlines()]

    def logits(self, ids):
        lines = "".join(json.dumps(i) + "\n" for i in ids)
        out = self._run("logits", "--threads", self.threads, stdin=lines)
        return [json.loads(x) for x in out.splitlines()]

    def generate(self, prompt, *args):
        return json.loads(self._run("generate", "--prompt", prompt, "--json", "--threads",
                                    self.threads, *args))

    def bench(self, *args):
        return [json.loads(x) for x in self._run("bench", "--json", *args).splitlines()]


def write_result(name, result):
    """Keeps a measurement where the documentation looks for it."""
    path = ROOT / "docs/measurements" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(f"written: {path.relative_to(ROOT)}")
