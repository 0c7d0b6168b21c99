#include "lab/kernels/kv_append.hpp"
#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

/// Every exponent, and ties: the low half of the bits is 0, 1/2 or random.
std::vector<float> every_kind_of_float(std::size_t n) {
  Rng rng(17);
  std::vector<float> v = {0,     -0.0f,    INFINITY, -INFINITY,  65504, 65519.996f,
                          65520, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, NAN};
  while (v.size() < n) {
    std::uint32_t u = std::uint32_t(rng.bits());
    if (v.size() % 3 == 0) u &= 0xffff8000u;
    if (v.size() % 3 == 1) u &= 0xfffff000u;
    v.push_back(std::bit_cast<float>(u));
  }
  return v;
}

template <class KV>
bool is_rounded(KV stored, float from) {
  if (std::isnan(from)) return std::isnan(to_float(stored));
  const KV right = from_float<KV>(from);
  return std::memcmp(&stored, &right, sizeof right) == 0;
}

template <class KV>
void check_type(std::int64_t n_kv_heads, std::int64_t head_dim) {
  const std::int64_t row = n_kv_heads * head_dim, capacity = 9;
  const std::vector<std::int32_t> slots = {4, -1, 0, 8, -2147483647 - 1};
  const std::int64_t n_tokens = std::int64_t(slots.size());
  const auto x = every_kind_of_float(std::size_t(n_tokens * row));
  const KV untouched = from_float<KV>(7);
  const auto check = [&](const auto& f) {
    Guarded<KV> cache(capacity * row);
    for (std::int64_t i = 0; i < cache.size(); ++i) cache[i] = untouched;
    f(cache.view({capacity, n_kv_heads, head_dim}),
      view_of(x, {n_tokens, n_kv_heads, head_dim}),
      HostView<const std::int32_t, 1>{slots.data(), {n_tokens}});
    for (std::int64_t s = 0; s < capacity; ++s)
      for (std::int64_t i = 0; i < row; ++i) {
        const auto t = std::find(slots.begin(), slots.end(), s) - slots.begin();
        const float v = t < n_tokens ? x[std::size_t(t * row + i)] : 7.0f;
        if (!is_rounded(cache[s * row + i], v))
          FAIL(v << " in slot " << s << " became " << to_float(cache[s * row + i]));
      }
    REQUIRE(cache.intact());
  };
  check(cpu::reference::kv_append<KV>);
  each_instruction_set([&] { check(cpu::kv_append<KV>); });
}

}  // namespace

TEST_CASE("kv_append rounds to nearest even into its slots, and nowhere else") {
  for (const std::int64_t head_dim : {0, 1, 15, 31, 33, 64, 1025}) {
    INFO("head_dim=" << head_dim);
    for (const std::int64_t n_kv_heads : {1, 3}) {
      check_type<float>(n_kv_heads, head_dim);
      check_type<Half>(n_kv_heads, head_dim);
      check_type<BFloat16>(n_kv_heads, head_dim);
    }
  }
  check_type<Half>(8, 4097);  // several tasks
}

TEST_CASE("kv_append refuses slots beyond the cache before it writes any") {
  const std::vector<float> x(4, 2.0f);
  std::vector<float> cache(6, 1.0f);
  const std::int32_t slots[] = {0, 3};
  for (const auto& f : {cpu::kv_append<float>, cpu::reference::kv_append<float>}) {
    CHECK(message_of([&] {
            f({cache.data(), {3, 1, 2}}, view_of(x, {2, 1, 2}), {slots, {2}});
          }) == "kv_append: slot 3 is beyond the cache's 3 rows");
    CHECK(cache == std::vector<float>(6, 1.0f));
    CHECK(message_of([&] {
            f({cache.data(), {3, 2, 1}}, view_of(x, {2, 1, 2}), {slots, {2}});
          }) == "kv_append: the cache is (S=3, K=2, Dh=1) but x is (T=2, K=1, Dh=2)");
    CHECK(message_of([&] {
            f({cache.data(), {3, 1, 2}}, view_of(x, {2, 1, 2}), {slots, {1}});
          }) == "kv_append: 1 slots for 2 tokens");
  }
}
