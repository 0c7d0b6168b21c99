"""Runs the decodelab program as a script would: output formats, exit codes, error sentences.

    test_decodelab.py PROGRAM MODELS_DIR
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MODELS = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*args, stdin="", **env):
    return subprocess.run([PROGRAM, *args], input=stdin, capture_output=True, text=True,
                          env={**os.environ, **env}, check=False)


class CommandTest(unittest.TestCase):
    def ok(self, *args, stdin=""):
        result = run(*args, stdin=stdin)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refuses(self, code, expected, *args, stdin="", **env):
        """One sentence on stderr that holds `expected`, and the exit code."""
        result = run(*args, stdin=stdin, **env)
        self.assertEqual(result.returncode, code, result.stderr)
        lines = result.stderr.strip().splitlines()
        self.assertIn(expected, lines[0])
        self.assertEqual(len(lines), 2 if code == 2 else 1, result.stderr)


class Usage(CommandTest):
    def test_help_lists_commands_and_every_command_has_help(self):
        text = self.ok("--help")
        for command in ("generate", "tokenize", "logits", "inspect", "bench", "perplexity"):
            self.assertIn(command, text)
            self.assertIn("help", self.ok(command, "--help"))

    def test_contract_is_in_help(self):
        text = self.ok("generate", "--help")
        for word in ("--prompt-file", "--chat", "--max-tokens", "--temperature", "--top-k", "--samples", "--beams",
                     "--length-penalty",
                     "--top-p", "--min-p", "--seed", "--threads", "--json", "finish_reason", "--device", "simt"):
            self.assertIn(word, text)
        text = self.ok("bench", "--help")
        for word in ("--prefill", "--decode", "--batch", "--threads", "--device", "--json",
                     "flop_share"):
            self.assertIn(word, text)

    def test_wrong_command_lines_exit_2(self):
        self.refuses(2, "no command")
        self.refuses(2, "unknown command 'chat'", "chat")
        self.refuses(2, "wrong", "generate", "--wrong")
        self.refuses(2, "unexpected argument 'x'", "generate", "--prompt", "a", "x")
        self.refuses(2, "--prompt TEXT or --prompt-file FILE", "generate")
        self.refuses(2, "many", "generate", "--prompt", "a", "--max-tokens", "many")
        self.refuses(2, "--max-tokens is 0", "generate", "--prompt", "a", "--max-tokens", "0")
        self.refuses(2, "temperature is -1", "generate", "--prompt", "a", "--temperature", "-1")
        self.refuses(2, "top-p is 0", "generate", "--prompt", "a", "--top-p", "0")
        self.refuses(2, "--threads is 'two'", "generate", "--prompt", "a", "--threads", "two")
        self.refuses(2, "--kv-dtype is 'q4'", "generate", "--prompt", "a", "--kv-dtype", "q4")
        self.refuses(2, "--activations is 'int4'", "generate", "--prompt", "a",
                     "--activations", "int4")
        self.refuses(2, "int8 is for --device cpu", "generate", "--prompt", "a",
                     "--activations", "int8", "--device", "simt")
        self.refuses(2, "unknown device 'gpu'", "generate", "--prompt", "a", "--device", "gpu")
        self.refuses(2, "--threads has 'x'", "bench", "--threads", "1,x")
        self.refuses(2, "at least 1", "bench", "--prefill", "0")
        self.refuses(2, "no file given", "inspect")


class Generate(CommandTest):
    def test_json_object(self):
        out = json.loads(self.ok("generate", "--prompt", "What is 2+2?", "--json"))
        self.assertEqual(set(out), {"prompt_ids", "ids", "text", "finish_reason", "ttft_ms",
                                    "tpot_ms", "prefill_tokens_per_s", "decode_tokens_per_s",
                                    "device", "activations"})
        self.assertEqual(out["finish_reason"], "stop")
        self.assertIn("4", out["text"])
        self.assertEqual(out["ids"][-1], 0)             # the end token is in ids, not in text
        self.assertNotIn("<|end|>", out["text"])
        self.assertGreater(out["ttft_ms"], 0)

    def test_several_samples(self):
        args = ("generate", "--prompt", "Once upon a time", "--max-tokens", "12",
                "--temperature", "1", "--seed", "5", "--json")
        one = json.loads(self.ok(*args))
        three = json.loads(self.ok(*args, "--samples", "3"))
        self.assertEqual(set(three), {"prompt_ids", "answers", "device", "activations"})
        self.assertEqual(len(three["answers"]), 3)
        self.assertEqual(three["answers"][0], {key: one[key] for key in
                                               ("ids", "text", "finish_reason")})
        self.assertNotEqual(three["answers"][0]["ids"], three["answers"][1]["ids"])
        self.assertEqual(three["answers"][:2],
                         json.loads(self.ok(*args, "-n", "2"))["answers"])

    def test_beam_search(self):
        args = ("generate", "--prompt", "What is 2+2?", "--max-tokens", "16", "--json")
        greedy = json.loads(self.ok(*args))
        alone, = json.loads(self.ok(*args, "--beams", "1"))["answers"]
        self.assertEqual((alone["ids"], alone["text"]), (greedy["ids"], greedy["text"]))
        four = json.loads(self.ok(*args, "--beams", "4"))["answers"]
        self.assertEqual(len(four), 4)
        scores = [beam["score"] for beam in four]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertGreaterEqual(four[0]["score"], alone["score"] - 1e-9)
        self.assertLess(four[0]["log_probability"], 0)
        shown = self.ok("generate", "--prompt", "What is 2+2?", "--beams", "2")
        self.assertIn("== 1, score -", shown)
        self.assertIn("== 2, score -", shown)

    def test_what_does_not_go_together(self):
        for options, said in (("--samples 0", "--samples is 0"), ("--beams -1", "--beams is -1"),
                              ("-n 2 --beams 2", "give one of them"),
                              ("--samples 2 --naive", "--naive does not go with --samples"),
                              ("--beams 2 --stop x", "--stop does not go with --beams"),
                              ("--beams 2 --temperature 1", "draws nothing")):
            self.refuses(2, said, "generate", "--prompt", "a", *options.split())

    def test_text_and_metrics_go_to_different_streams(self):
        result = run("generate", "--prompt", "What is 2+2?")
        self.assertIn("4", result.stdout)
        self.assertNotIn("TTFT", result.stdout)
        self.assertIn("TTFT", result.stderr)

    def test_naive_and_16_bit_caches_agree_with_the_default(self):
        args = ("generate", "--prompt", "Once upon a time", "--max-tokens", "20", "--json")
        ids = json.loads(self.ok(*args))["ids"]
        self.assertEqual(ids, json.loads(self.ok(*args, "--naive"))["ids"])
        self.assertEqual(len(json.loads(self.ok(*args, "--kv-dtype", "f16"))["ids"]), 20)

    def test_simt_runs_the_cuda_kernels_and_writes_the_same(self):
        args = ("generate", "--prompt", "What is 2+2?", "--max-tokens", "12", "--json")
        self.assertEqual(json.loads(self.ok(*args))["ids"],
                         json.loads(self.ok(*args, "--device", "simt"))["ids"])

    def test_no_gpu_is_exit_77_and_never_a_pass(self):
        result = run("generate", "--prompt", "a", "--device", "cuda")
        if result.returncode == 0:
            self.skipTest("there is a GPU here")
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertIn("--device simt", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_seed_decides(self):
        args = ("generate", "--prompt", "Once", "--max-tokens", "24", "--temperature", "1.5", "--json")
        texts = [json.loads(self.ok(*args, "--seed", s))["text"] for s in ("1", "1", "2")]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_stop_string_with_a_comma(self):
        out = json.loads(self.ok("generate", "--prompt", "Once upon a time", "--stop", ",",
                                 "--stop", ".", "--json"))
        self.assertEqual(out["finish_reason"], "stop")
        self.assertNotIn(".", out["text"])

    def test_max_tokens_and_length(self):
        out = json.loads(self.ok("generate", "--prompt", "Once upon a time", "--max-tokens", "3",
                                 "--json"))
        self.assertEqual((len(out["ids"]), out["finish_reason"]), (3, "length"))

    def test_prompt_file_is_taken_to_the_byte(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            f.write("What is 2+2?")
            f.flush()
            a = json.loads(self.ok("generate", "--prompt-file", f.name, "--json"))
        b = json.loads(self.ok("generate", "--prompt", "What is 2+2?", "--json"))
        self.assertEqual(a["prompt_ids"], b["prompt_ids"])

    def test_the_context_can_be_filled_to_the_end(self):
        prompt = "a" + " 1" * 510                       # 1 + 1,020 tokens of 1,024
        out = json.loads(self.ok("generate", "--prompt", prompt, "--ignore-end",
                                 "--max-tokens", "9000000000000000000", "--json"))
        self.assertEqual(len(out["prompt_ids"]) + len(out["ids"]), 1025)
        self.assertEqual(out["finish_reason"], "length")

    def test_what_cannot_be_generated_from(self):
        self.refuses(1, "the prompt is empty", "generate", "--prompt", "")
        self.refuses(1, "context holds", "generate", "--prompt", "7 " * 1000)
        self.refuses(1, "no ChatML", "generate", "--prompt", "Hi", "--chat")
        self.refuses(1, "/no/such/file", "generate", "--prompt-file", "/no/such/file")


class TokenizeAndLogits(CommandTest):
    def test_one_array_a_line(self):
        out = self.ok("tokenize", stdin='"What is 2+2?"\n\n""\n"\\u00e9"\n').splitlines()
        self.assertEqual(len(out), 3)
        self.assertGreater(len(json.loads(out[0])), 4)
        self.assertEqual(json.loads(out[1]), [])

    def test_special_tokens_only_when_asked(self):
        text = json.dumps("<|end|>") + "\n"
        self.assertEqual(json.loads(self.ok("tokenize", "--special", stdin=text)), [0])
        self.assertNotIn(0, json.loads(self.ok("tokenize", stdin=text)))

    def test_logits_are_pytorchs(self):
        case = json.loads((MODELS / "golden/target.json").read_text())["cases"][-2]
        got = json.loads(self.ok("logits", stdin=json.dumps(case["ids"]) + "\n"))
        self.assertEqual(len(got), len(case["logits"]))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(got, case["logits"])), 2e-4)

    def test_invalid_lines_are_named(self):
        self.refuses(1, "line 2: expected one JSON string", "tokenize", stdin='"a"\n{"b": 1\n')
        self.refuses(1, "line 1: expected one JSON string", "tokenize", stdin="[1]\n")
        self.refuses(1, "line 1: expected a JSON array", "logits", stdin="[]\n")
        self.refuses(1, "line 1: expected a JSON array", "logits", stdin="[1, 2\n")
        self.refuses(1, "line 1: '-1' is not a token id", "logits", stdin="[-1]\n")
        self.refuses(1, "line 1: '1.5' is not a token id", "logits", stdin="[1.5]\n")
        self.refuses(1, "'99999999999' is not", "logits", stdin="[99999999999]\n")
        self.refuses(1, "token id 1024 is outside the vocabulary", "logits", stdin="[1024]\n")
        self.refuses(1, "1025 tokens", "logits", stdin=json.dumps([1] * 1025))


class InspectAndBench(CommandTest):
    def test_inspect_shows_configuration_metadata_and_tensors(self):
        text = self.ok("inspect", str(MODELS / "target.gguf"))
        for word in ("n_kv_heads 2", "general.architecture", "blk.3.ffn_down.weight", "(256, 512)"):
            self.assertIn(word, text)

    def test_bench_rows(self):
        out = self.ok("bench", "--prefill", "16", "--decode", "4", "--batch", "2", "--threads",
                      "1,2", "--repeat", "1", "--json").splitlines()
        rows = [json.loads(line) for line in out]
        self.assertEqual([r["threads"] for r in rows], [1, 2])
        for row in rows:
            self.assertEqual(list(row), ["threads", "batch", "prefill_tokens_per_s",
                                         "decode_tokens_per_s", "bandwidth_share", "flop_share",
                                         "device", "activations"])
            self.assertEqual(row["batch"], 2)
            self.assertTrue(all(v > 0 for v in list(row.values())[:-2]), row)

    def test_bench_beyond_the_context(self):
        self.refuses(1, "context of 1024", "bench", "--prefill", "1024", "--decode", "6")
        self.refuses(1, "context of 1024", "bench", "--decode", "9223372036854775807")


class Files(CommandTest):
    """Every kind of file that is not a model gets a sentence, for every command that loads one."""

    def damaged(self, change):
        f = tempfile.NamedTemporaryFile(suffix=".gguf")
        self.addCleanup(f.close)
        f.write(change((MODELS / "draft.gguf").read_bytes()))
        f.flush()
        return f.name

    def refuses_model(self, expected, path):
        self.refuses(1, expected, "inspect", path)
        self.refuses(1, expected, "generate", "--model", path, "--prompt", "a")
        self.refuses(1, expected, "logits", "--model", path, stdin="[1]\n")

    def test_missing(self):
        self.refuses_model("no model '/no/such.gguf'", "/no/such.gguf")
        self.refuses(1, "./lab model smollm2", "inspect", "smollm2", XDG_CACHE_HOME="/nonexistent")
        self.refuses(1, "LAB_MODELS_DIR", "inspect", "target", LAB_MODELS_DIR="/nonexistent")

    def test_not_a_model(self):
        self.refuses_model("", self.damaged(lambda b: b""))
        self.refuses_model("neither GGUF nor safetensors", self.damaged(lambda b: b"#!/bin/sh\n" * 9))
        with tempfile.TemporaryDirectory() as folder:
            self.refuses_model(folder, folder)

    def test_truncated(self):
        for share in (0.001, 0.02, 0.5, 0.999):
            self.refuses_model("", self.damaged(lambda b, s=share: b[:int(len(b) * s)]))

    def test_hostile(self):
        self.refuses_model("version", self.damaged(lambda b: b[:4] + b"\xff" * 4 + b[8:]))
        self.refuses_model("", self.damaged(lambda b: b[:8] + b"\xff" * 16 + b[24:]))

    def test_unknown_architecture_and_type(self):
        self.refuses_model("grape", self.damaged(
            lambda b: b.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0grape", 1)))
        name = b"blk.0.attn_q.weight"
        def retype(b):                                  # name, u32 n_dims, 2 extents, u32 type
            at = b.index(name) + len(name) + 4 + 16
            return b[:at] + b"\x63\0\0\0" + b[at + 4:]
        self.refuses_model("type", self.damaged(retype))


class Perplexity(CommandTest):
    def test_a_known_text_is_predicted_well_and_float_weights_ignore_int8(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "text.txt")
            text.write_text(json.loads(self.ok("generate", "--prompt", "Once upon a time",
                                               "--max-tokens", "60", "--json"))["text"])
            args = ("perplexity", "--text", str(text), "--window", "32", "--json")
            exact = json.loads(self.ok(*args, "--activations", "f32"))
            self.assertLess(exact["perplexity"], 10)        # of 1024 tokens: it wrote it itself
            self.assertEqual(exact["mean_kl"], 0)
            fast = json.loads(self.ok(*args, "--activations", "int8"))
            self.assertEqual(fast, exact)                   # and say so: "activations": "f32"
            self.assertIn("perplexity", self.ok(*args[:-1]))

    def test_refusals(self):
        self.refuses(2, "--text FILE", "perplexity")
        self.refuses(1, "cannot read the text file", "perplexity", "--text", "/no/such")
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            self.refuses(1, "0 token(s)", "perplexity", "--text", f.name)
            self.refuses(2, "--window is 1", "perplexity", "--text", f.name, "--window", "1")
            self.refuses(1, "beyond the model's context", "perplexity", "--text", f.name,
                         "--window", "100000")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
