"""llama.cpp as a measuring process: one JSON request a line in, one JSON answer a line out.

    llama_cpp_worker.py FILE.gguf THREADS

{"prefill": P, "decode": N, "batch": B} -> {"prefill_tokens_per_s", "decode_tokens_per_s"}
Its own thread pool sleeps between requests. Works on llama.cpp's C interface: a batch of B sequences,
one token each, is one llama_decode call.
"""
import json
import sys
import time

import llama_cpp


class Worker:
    def __init__(self, path, threads, context=2048, sequences=16):
        llama_cpp.llama_log_set(silent, None)
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context, 512, 512
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit(f"llama.cpp cannot use {path}")
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(512, 0, 1)

    def decode(self, tokens):
        """One pass over (token, position, sequence, wants_logits) tuples."""
        for i, (token, position, sequence, wanted) in enumerate(tokens):
            self.batch.token[i], self.batch.pos[i] = token, position
            self.batch.n_seq_id[i], self.batch.seq_id[i][0] = 1, sequence
            self.batch.logits[i] = wanted
        self.batch.n_tokens = len(tokens)
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama_decode failed")
        llama_cpp.llama_synchronize(self.context)

    def measure(self, prefill, decode, batch):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        prompt = [(7 * i + 1) % self.vocab for i in range(prefill)]
        start = time.perf_counter()
        for sequence in range(batch):
            self.decode([(t, i, sequence, i == prefill - 1) for i, t in enumerate(prompt)])
        prefill_s = time.perf_counter() - start
        start = time.perf_counter()
        for step in range(decode):
            self.decode([(prompt[0], prefill + step, sequence, True) for sequence in range(batch)])
        decode_s = time.perf_counter() - start
        return {"prefill_tokens_per_s": prefill * batch / prefill_s,
                "decode_tokens_per_s": decode * batch / decode_s}


@llama_cpp.llama_log_callback
def silent(level, text, user_data):
    del level, text, user_data


def main():
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        print(json.dumps(worker.measure(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
