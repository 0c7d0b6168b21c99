#include "lab/kernels/check.hpp"

#include <string>

#include "lab/core/error.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab {

void throw_error(const std::string& message) { throw Error(message); }
namespace {

/// "(n_tokens=5, model_dim=128)"
template <std::size_t N>
std::string described(const std::array<const char*, N>& names,
                      const Extents<int(N)>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < N; ++i)
    text += fmt::format("{}{}={}", i ? ", " : "", names[i], shape[i]);
  return text + ")";
}

constexpr std::array<const char*, 2> kTokensDim = {"n_tokens", "model_dim"};
constexpr std::array<const char*, 2> kTokensVocab = {"n_tokens", "vocab_size"};
constexpr std::array<const char*, 2> kTokensFfn = {"n_tokens", "ffn_dim"};
constexpr std::array<const char*, 2> kTokensOut = {"n_tokens", "out"};
constexpr std::array<const char*, 2> kTokensIn = {"n_tokens", "in"};
constexpr std::array<const char*, 2> kTokensPairs = {"n_tokens", "head_dim/2"};
constexpr std::array<const char*, 3> kQuery = {"n_tokens", "n_heads", "head_dim"};
constexpr std::array<const char*, 3> kKey = {"kv_len", "n_kv_heads", "head_dim"};
constexpr std::array<const char*, 4> kBlocks = {"n_blocks", "block_size", "n_kv_heads",
                                                "head_dim"};

template <std::size_t N>
void same_shape(const char* op, const std::array<const char*, N>& names, const char* a,
                const Extents<int(N)>& a_shape, const char* b,
                const Extents<int(N)>& b_shape) {
  LAB_CHECK(a_shape == b_shape, "{}: {} is {} but {} is {}; give both the same shape", op,
            a, described(names, a_shape), b, described(names, b_shape));
}

}  // namespace

void check_embedding(Extents<2> out, Extents<1> ids, DType dtype, std::int64_t vocab_size,
                     std::int64_t model_dim) {
  LAB_CHECK(ids[0] == out[0], "embedding: ids has n_tokens={} but out is {}", ids[0],
            described(kTokensDim, out));
  LAB_CHECK(model_dim == out[1],
            "embedding: table is (vocab_size={}, model_dim={}) but out is {}", vocab_size,
            model_dim, described(kTokensDim, out));
  const std::int64_t block = dtype_info(dtype).block_size;
  LAB_CHECK(model_dim % block == 0,
            "embedding: table has model_dim={} but {} stores rows in blocks of {}",
            model_dim, name(dtype), block);
}

void check_ids(HostView<const std::int32_t, 1> ids, std::int64_t vocab_size) {
  for (std::int64_t t = 0; t < ids.shape[0]; ++t)
    LAB_CHECK(
        ids[t] >= 0 && ids[t] < vocab_size,
        "embedding: ids[{}] is {} but the table has vocab_size={}; give ids from 0 to {}",
        t, ids[t], vocab_size, vocab_size - 1);
}

void check_dequantize(Extents<1> out, DType dtype) {
  const std::int64_t block = dtype_info(dtype).block_size;
  LAB_CHECK(out[0] % block == 0,
            "dequantize: out has {} elements but {} stores blocks of {}; give whole blocks",
            out[0], name(dtype), block);
}

void check_rms_norm(Extents<2> out, Extents<2> x, Extents<1> weight) {
  same_shape("rms_norm", kTokensDim, "out", out, "x", x);
  LAB_CHECK(weight[0] == x[1], "rms_norm: weight has model_dim={} but x is {}", weight[0],
            described(kTokensDim, x));
}

void check_rope_angles(Extents<2> cos, Extents<2> sin, Extents<1> positions,
                       Extents<1> inv_freq) {
  same_shape("rope_angles", kTokensPairs, "cos", cos, "sin", sin);
  LAB_CHECK(positions[0] == cos[0], "rope_angles: positions has n_tokens={} but cos is {}",
            positions[0], described(kTokensPairs, cos));
  LAB_CHECK(inv_freq[0] == cos[1], "rope_angles: inv_freq has head_dim/2={} but cos is {}",
            inv_freq[0], described(kTokensPairs, cos));
}

void check_rope(Extents<3> x, Extents<2> cos, Extents<2> sin) {
  LAB_CHECK(x[2] % 2 == 0, "rope: x is {} but rotation needs an even head_dim",
            described(kQuery, x));
  same_shape("rope", kTokensPairs, "cos", cos, "sin", sin);
  LAB_CHECK(cos[0] == x[0] && cos[1] == x[2] / 2, "rope: cos is {} but x is {}",
            described(kTokensPairs, cos), described(kQuery, x));
}

void check_weights(DType dtype, std::int64_t rows, std::int64_t cols) {
  LAB_CHECK(rows >= 0 && cols >= 0, "linear: weights are (out={}, in={}); give sizes >= 0",
            rows, cols);
  const std::int64_t block = dtype_info(dtype).block_size;
  LAB_CHECK(cols % block == 0,
            "linear: weights are (out={}, in={}) but {} stores rows in blocks of {}", rows,
            cols, name(dtype), block);
}

void check_linear(Extents<2> y, Extents<2> x, std::int64_t rows, std::int64_t cols) {
  LAB_CHECK(y[0] == x[0], "linear: y is {} but x is {}; give both the same n_tokens",
            described(kTokensOut, y), described(kTokensIn, x));
  LAB_CHECK(y[1] == rows, "linear: weights are (out={}, in={}) but y is {}", rows, cols,
            described(kTokensOut, y));
  LAB_CHECK(x[1] == cols, "linear: weights are (out={}, in={}) but x is {}", rows, cols,
            described(kTokensIn, x));
}

void check_attention(Extents<3> out, Extents<3> q, Extents<3> k, Extents<3> v) {
  same_shape("attention", kQuery, "out", out, "q", q);
  same_shape("attention", kKey, "k", k, "v", v);
  LAB_CHECK(k[2] == q[2], "attention: k is {} but q is {}; give both the same head_dim",
            described(kKey, k), described(kQuery, q));
  LAB_CHECK(k[1] >= 1 && q[1] % k[1] == 0,
            "attention: k is {} but q is {}; n_heads must be a multiple of n_kv_heads",
            described(kKey, k), described(kQuery, q));
  LAB_CHECK(q[0] >= 1 && k[0] >= q[0],
            "attention: k is {} but q is {}; kv_len >= n_tokens >= 1 is needed, since the "
            "queries are the last positions",
            described(kKey, k), described(kQuery, q));
}

void check_paged_attention(Extents<3> out, Extents<3> q, Extents<4> k, Extents<4> v,
                           Extents<1> query_starts, Extents<1> kv_lens,
                           Extents<2> block_tables, const char* op) {
  same_shape(op, kQuery, "out", out, "q", q);
  same_shape(op, kBlocks, "k", k, "v", v);
  LAB_CHECK(k[3] == q[2], "{}: k is {} but q is {}; give both the same head_dim", op,
            described(kBlocks, k), described(kQuery, q));
  LAB_CHECK(k[2] >= 1 && q[1] % k[2] == 0,
            "{}: k is {} but q is {}; n_heads must be a multiple of "
            "n_kv_heads",
            op, described(kBlocks, k), described(kQuery, q));
  LAB_CHECK(k[1] >= 1, "{}: k is {}; a block has at least one row", op,
            described(kBlocks, k));
  LAB_CHECK(query_starts[0] == kv_lens[0] + 1 && block_tables[0] == kv_lens[0],
            "{}: {} lengths, {} query starts and {} block tables; B sequences "
            "have B, B + 1 and B",
            op, kv_lens[0], query_starts[0], block_tables[0]);
}

void check_paged_batch(const PagedBatch<Space::host>& batch, std::int64_t n_tokens,
                       std::int64_t n_blocks, std::int64_t block_size, const char* op) {
  const std::int64_t B = batch.kv_lens.shape[0], M = batch.block_tables.shape[1];
  LAB_CHECK(batch.query_starts[0] == 0,
            "{}: the first sequence starts at row {}; it must start at 0", op,
            batch.query_starts[0]);
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t begin = batch.query_starts[b], end = batch.query_starts[b + 1];
    LAB_CHECK(begin <= end && end <= n_tokens,
              "{}: sequence {} has rows {} to {} of {}; starts must rise and "
              "stay within the batch",
              op, b, begin, end, n_tokens);
    if (begin == end) continue;
    const std::int64_t kv_len = batch.kv_lens[b];
    LAB_CHECK(kv_len >= end - begin && kv_len <= M * block_size,
              "{}: sequence {} has {} positions; it needs at least its {} "
              "queries, and {} blocks of {} hold no more than {}",
              op, b, kv_len, end - begin, M, block_size, M * block_size);
    for (std::int64_t i = 0; i * block_size < kv_len; ++i)
      LAB_CHECK(batch.block_tables[b][i] >= 0 && batch.block_tables[b][i] < n_blocks,
                "{}: block {} of sequence {} is number {}; there are blocks 0 "
                "to {}",
                op, i, b, batch.block_tables[b][i], n_blocks - 1);
  }
}

void check_flash_attention(Extents<3> out, Extents<2> lse, Extents<3> q, Extents<3> k,
                           Extents<3> v, Extents<1> query_starts, Extents<1> key_starts) {
  same_shape("flash_attention", kQuery, "out", out, "q", q);
  same_shape("flash_attention", kKey, "k", k, "v", v);
  LAB_CHECK(lse[0] == q[0] && lse[1] == q[1],
            "flash_attention: lse is (n_tokens={}, n_heads={}) but q is {}", lse[0], lse[1],
            described(kQuery, q));
  LAB_CHECK(q[2] == k[2] && q[2] >= 1 && k[1] >= 1 && q[1] % k[1] == 0,
            "flash_attention: k is {} but q is {}; give both the same head_dim of at least "
            "1, and n_heads a multiple of n_kv_heads",
            described(kKey, k), described(kQuery, q));
  LAB_CHECK(
      query_starts[0] == key_starts[0] && query_starts[0] >= 1,
      "flash_attention: query_starts has {} elements and key_starts {}; give both one "
      "more than there are sequences",
      query_starts[0], key_starts[0]);
}

void check_flash_attention(Extents<3> out, Extents<2> lse, Extents<3> q, Extents<4> k,
                           Extents<4> v, Extents<1> query_starts, Extents<1> kv_lens,
                           Extents<2> block_tables) {
  check_paged_attention(out, q, k, v, query_starts, kv_lens, block_tables,
                        "flash_attention");
  LAB_CHECK(lse[0] == q[0] && lse[1] == q[1],
            "flash_attention: lse is (n_tokens={}, n_heads={}) but q is {}", lse[0], lse[1],
            described(kQuery, q));
  LAB_CHECK(q[2] >= 1, "flash_attention: q is {}; give it a head_dim of at least 1",
            described(kQuery, q));
}

namespace {
void check_starts(const char* which, HostView<const std::int32_t, 1> starts,
                  std::int64_t end) {
  const std::int64_t n = starts.shape[0];
  LAB_CHECK(starts[0] == 0 && starts[n - 1] == end,
            "flash_attention: {} runs from {} to {}; it must run from 0 to the {} rows",
            which, starts[0], starts[n - 1], end);
  for (std::int64_t b = 0; b + 1 < n; ++b)
    LAB_CHECK(starts[b] <= starts[b + 1],
              "flash_attention: {}[{}] is {} but the one before is {}; starts must rise",
              which, b + 1, starts[b + 1], starts[b]);
}
}  // namespace

void check_ragged_batch(const RaggedBatch<Space::host>& batch, std::int64_t n_tokens,
                        std::int64_t n_keys) {
  check_starts("query_starts", batch.query_starts, n_tokens);
  check_starts("key_starts", batch.key_starts, n_keys);
}

void check_silu_mul(Extents<2> out, Extents<2> gate, Extents<2> up) {
  same_shape("silu_mul", kTokensFfn, "out", out, "gate", gate);
  same_shape("silu_mul", kTokensFfn, "gate", gate, "up", up);
}

void check_add(Extents<2> out, Extents<2> a, Extents<2> b) {
  same_shape("add", kTokensDim, "out", out, "a", a);
  same_shape("add", kTokensDim, "a", a, "b", b);
}

void check_softmax(Extents<2> out, Extents<2> x) {
  same_shape("softmax", kTokensVocab, "out", out, "x", x);
}

void check_argmax(Extents<1> out, Extents<2> x) {
  LAB_CHECK(out[0] == x[0], "argmax: out has n_tokens={} but x is {}", out[0],
            described(kTokensVocab, x));
  LAB_CHECK(x[1] >= 1, "argmax: x is {}; a row needs at least one element",
            described(kTokensVocab, x));
}

void check_sample(Extents<1> out, Extents<2> p, Extents<1> u) {
  LAB_CHECK(out[0] == p[0], "sample: out has n_tokens={} but p is {}", out[0],
            described(kTokensVocab, p));
  LAB_CHECK(u[0] == p[0], "sample: u has n_tokens={} but p is {}", u[0],
            described(kTokensVocab, p));
  LAB_CHECK(p[1] >= 1, "sample: p is {}; a row needs at least one element",
            described(kTokensVocab, p));
}

void check_kv_append(Extents<3> cache, Extents<3> x, Extents<1> slots) {
  LAB_CHECK(cache[1] == x[1] && cache[2] == x[2],
            "kv_append: the cache is (S={}, K={}, Dh={}) but x is (T={}, K={}, Dh={})",
            cache[0], cache[1], cache[2], x[0], x[1], x[2]);
  LAB_CHECK(slots[0] == x[0], "kv_append: {} slots for {} tokens", slots[0], x[0]);
}

void check_slots(HostView<const std::int32_t, 1> slots, std::int64_t rows) {
  for (std::int64_t t = 0; t < slots.shape[0]; ++t)
    LAB_CHECK(slots[t] < rows, "kv_append: slot {} is beyond the cache's {} rows", slots[t],
              rows);
}

}  // namespace lab
