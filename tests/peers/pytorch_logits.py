"""The built-in models against PyTorch's logits, which tools/train/golden.py recorded in f32.

    python3 tests/peers/pytorch_logits.py

Bound 2e-4. Writes docs/measurements/pytorch.json. (The test suite checks the same bound.)
"""
import json

from decodelab import ROOT, Decodelab, write_result

BOUND = 2e-4


def main():
    result, ok = {"bound": BOUND}, True
    for name in ("target", "draft"):
        cases = json.loads((ROOT / f"models/golden/{name}.json").read_text())["cases"]
        got = Decodelab(name).logits([c["ids"] for c in cases])
        worst = [max(abs(a - b) for a, b in zip(row, c["logits"])) for row, c in zip(got, cases)]
        result[name] = {"tokens": [len(c["ids"]) for c in cases], "largest_difference": worst}
        ok = ok and all(w <= BOUND for w in worst)
        print(f"{name}: largest |difference| {max(worst):.1e} over {len(cases)} texts")
    write_result("pytorch", result)
    raise SystemExit(0 if ok else 1)


if __name__ == "__main__":
    main()
