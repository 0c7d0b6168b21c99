#include "lab/kernels/attention.hpp"
#include "kernels/support.hpp"
#include "lab/kernels/check.hpp"

using namespace lab;
using namespace lab::test;

namespace {

struct Case {
  std::int64_t T, S, H, K, Dh;
  std::string name() const {
    return fmt::format("T={} S={} H={} K={} Dh={}", T, S, H, K, Dh);
  }
};

template <class KV>
struct Problem {
  Case c;
  std::vector<float> q;
  std::vector<KV> k, v;
  float scale;

  explicit Problem(Case shape, float magnitude = 1)
      : c(shape), scale(1 / std::sqrt(float(c.Dh))) {
    Rng rng(21);
    q = random_floats(rng, c.T * c.H * c.Dh, magnitude);
    for (std::int64_t i = 0; i < c.S * c.K * c.Dh; ++i) {
      k.push_back(from_float<KV>(float(rng.normal())));
      v.push_back(from_float<KV>(float(rng.normal())));
    }
  }
  HostView<const float, 3> queries() const { return view_of(q, {c.T, c.H, c.Dh}); }
  HostView<const KV, 3> keys() const { return {k.data(), {c.S, c.K, c.Dh}}; }
  HostView<const KV, 3> values() const { return {v.data(), {c.S, c.K, c.Dh}}; }
};

template <class KV>
std::vector<float> textbook(const Problem<KV>& p) {
  const auto [T, S, H, K, Dh] = p.c;
  std::vector<float> out;
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t h = 0; h < H; ++h) {
      const std::int64_t g = h * K / H;
      std::vector<double> w;
      double largest = -INFINITY, sum = 0;
      for (std::int64_t s = 0; s <= S - T + t; ++s) {
        double dot = 0;
        for (std::int64_t d = 0; d < Dh; ++d)
          dot += double(p.q[std::size_t((t * H + h) * Dh + d)]) *
                 double(to_float(p.k[std::size_t((s * K + g) * Dh + d)]));
        w.push_back(dot * p.scale);
        largest = std::max(largest, w.back());
      }
      for (double& e : w) sum += e = std::exp(e - largest);
      for (std::int64_t d = 0; d < Dh; ++d) {
        double mixed = 0;
        for (std::size_t s = 0; s < w.size(); ++s)
          mixed +=
              w[s] *
              double(to_float(p.v[(s * std::size_t(K) + std::size_t(g)) * std::size_t(Dh) +
                                  std::size_t(d)]));
        out.push_back(float(mixed / sum));
      }
    }
  return out;
}

const Case kCases[] = {{1, 1, 1, 1, 32},     {1, 31, 4, 2, 64},  {1, 1025, 9, 3, 64},
                       {100, 300, 6, 3, 20}, {3, 257, 4, 2, 64}, {1, 127, 8, 1, 128},
                       {3, 33, 6, 2, 32},    {31, 31, 8, 2, 64}, {33, 127, 4, 4, 64},
                       {40, 40, 3, 1, 16},   {5, 20, 2, 1, 2},   {7, 50, 4, 2, 80},
                       {2, 17, 12, 1, 34},   {1, 16, 2, 2, 256}, {4, 19, 5, 5, 31}};

template <class KV>
void check_case(const Case& c, float magnitude) {
  const Problem<KV> p(c, magnitude);
  INFO(c.name());
  const std::vector<float> expected = textbook(p);
  const std::int64_t n = c.T * c.H * c.Dh;
  const double absolute = 1e-5 * magnitude;
  Guarded<float> plain(n);
  cpu::reference::attention<KV>(plain.view({c.T, c.H, c.Dh}), p.queries(), p.keys(),
                                p.values(), p.scale);
  REQUIRE(mismatch(plain.data(), expected.data(), n, absolute, 1e-4) == "");
  REQUIRE(plain.intact());
  each_instruction_set([&] {
    Guarded<float> out(n);
    cpu::attention<KV>(out.view({c.T, c.H, c.Dh}), p.queries(), p.keys(), p.values(),
                       p.scale);
    REQUIRE(mismatch(out.data(), expected.data(), n, absolute, 1e-4) == "");
    REQUIRE(out.intact());
  });
}

}  // namespace

TEST_CASE("attention is softmax(q k) v over the visible keys, in double precision") {
  for (const Case& c : kCases) {
    check_case<float>(c, 1);
    check_case<Half>(c, 1);
    check_case<BFloat16>(c, 1);
    check_case<float>(c, 30);  // one key takes nearly all of the weight
  }
}

TEST_CASE("a query's result is the same bits alone, in a chunk and in a whole prompt") {
  const Case c{300, 300, 6, 2, 40};
  const std::int64_t row = c.H * c.Dh;
  const auto run = [&]<class KV>(KV) {
    const Problem<KV> p(c);
    each_instruction_set([&] {
      Guarded<float> whole(c.T * row);
      set_n_threads(2);
      cpu::attention<KV>(whole.view({c.T, c.H, c.Dh}), p.queries(), p.keys(), p.values(),
                         p.scale);
      for (const std::int64_t n : {1, 3, 7, 16, 130})
        for (const int threads : {1, 3})
          for (std::int64_t t = 0; t + n <= c.T; t += 29) {
            set_n_threads(threads);
            Guarded<float> part(n * row);
            cpu::attention<KV>(part.view({n, c.H, c.Dh}), p.queries().rows(t, t + n),
                               p.keys().rows(0, t + n), p.values().rows(0, t + n), p.scale);
            REQUIRE(std::memcmp(part.data(), whole.data() + t * row,
                                std::size_t(n * row) * sizeof(float)) == 0);
          }
    });
    set_n_threads(1);
  };
  run(float{});
  run(Half{});
}

TEST_CASE(
    "keys whose scores are minus infinity weigh nothing, even a whole chunk of them") {
  const Case c{3, 300, 2, 1, 16};
  Problem<float> p(c);
  for (float& x : p.q) x = 1e30f;
  for (int s = 0; s < c.S; ++s)
    for (int d = 0; d < c.Dh; ++d) p.k[std::size_t(s * c.Dh + d)] = s < 140 ? -1e30f : 0;
  const std::vector<float> expected = textbook(p);
  each_instruction_set([&] {
    Guarded<float> out(c.T * c.H * c.Dh);
    cpu::attention<float>(out.view({c.T, c.H, c.Dh}), p.queries(), p.keys(), p.values(),
                          p.scale);
    REQUIRE(mismatch(out.data(), expected.data(), out.size(), 1e-5, 1e-4) == "");
  });
}

TEST_CASE("a NaN key or value reaches the queries that see it, and no earlier one") {
  const int before = GENERATE(0, 112, 200);  // keys, so that a chunk ends near
  const Case c{20, 30 + before, 4, 2, 32};
  for (const bool in_key : {true, false}) {
    Problem<float> p(c);
    (in_key ? p.k : p.v)[std::size_t(((25 + before) * 2 + 1) * 32 + 3)] =
        NAN;  // position 25 is query 15; kv head 1
    each_instruction_set([&] {
      Guarded<float> out(20 * 4 * 32);
      cpu::attention<float>(out.view({20, 4, 32}), p.queries(), p.keys(), p.values(),
                            p.scale);
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const bool sees = i / (4 * 32) >= 15 && i / 32 % 4 >= 2;
        if (in_key || i % 32 == 3)
          REQUIRE(std::isnan(out[i]) == sees);
        else
          REQUIRE(std::isfinite(out[i]));
      }
    });
  }
}

TEST_CASE("scores as large as 1e4 do not overflow") {
  const Case c{2, 5, 1, 1, 32};
  Problem<float> p(c);
  for (std::size_t i = 0; i < p.q.size(); ++i) p.q[i] = 0;
  p.q[0] = p.q[32] = 1e4f;
  for (int s = 0; s < 5; ++s) p.k[std::size_t(s) * 32] = s == 1 ? 1.0f : -1.0f;
  p.scale = 1;
  each_instruction_set([&] {
    Guarded<float> out(64);
    cpu::attention<float>(out.view({2, 1, 32}), p.queries(), p.keys(), p.values(), p.scale);
    for (std::int64_t i = 0; i < 64; ++i) REQUIRE(out[i] == p.v[std::size_t(32 + i % 32)]);
  });
}

TEST_CASE("attention says which shapes disagree") {
  std::vector<float> x(4096);
  const auto run = [&](Case q, Extents<3> out, Extents<3> v) {
    return message_of([&] {
      cpu::attention<float>({x.data(), out}, {x.data(), {q.T, q.H, q.Dh}},
                            {x.data(), {q.S, q.K, q.Dh}}, {x.data(), v}, 1);
    });
  };
  CHECK(run({2, 4, 4, 2, 8}, {2, 4, 9}, {4, 2, 8}) ==
        "attention: out is (n_tokens=2, n_heads=4, head_dim=9) but q is (n_tokens=2, "
        "n_heads=4, "
        "head_dim=8); give both the same shape");
  CHECK(run({2, 4, 4, 2, 8}, {2, 4, 8}, {5, 2, 8}) ==
        "attention: k is (kv_len=4, n_kv_heads=2, head_dim=8) but v is (kv_len=5, "
        "n_kv_heads=2, "
        "head_dim=8); give both the same shape");
  CHECK(run({2, 4, 4, 3, 8}, {2, 4, 8}, {4, 3, 8}) ==
        "attention: k is (kv_len=4, n_kv_heads=3, head_dim=8) but q is (n_tokens=2, "
        "n_heads=4, "
        "head_dim=8); n_heads must be a multiple of n_kv_heads");
  CHECK(run({5, 4, 4, 2, 8}, {5, 4, 8}, {4, 2, 8}) ==
        "attention: k is (kv_len=4, n_kv_heads=2, head_dim=8) but q is (n_tokens=5, "
        "n_heads=4, "
        "head_dim=8); kv_len >= n_tokens >= 1 is needed, since the queries are the last "
        "positions");
  CHECK_THAT(run({0, 4, 4, 2, 8}, {0, 4, 8}, {4, 2, 8}),
             ContainsSubstring("n_tokens >= 1"));
  CHECK_THAT(run({2, 4, 4, 0, 8}, {2, 4, 8}, {4, 0, 8}), ContainsSubstring("multiple"));
  CHECK(message_of([&] {
          cpu::reference::attention<float>({x.data(), {1, 1, 8}}, {x.data(), {1, 1, 8}},
                                           {x.data(), {1, 1, 9}}, {x.data(), {1, 1, 9}}, 1);
        }) ==
        "attention: k is (kv_len=1, n_kv_heads=1, head_dim=9) but q is (n_tokens=1, "
        "n_heads=1, head_dim=8); give both the same head_dim");
}
