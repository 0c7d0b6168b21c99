#include "lab/kernels/attention.hpp"

#include "lab/kernels/check.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

struct Case {
  std::int64_t T, S, H, K, Dh;
  std::int64_t spare = 0;  // room in the cache beyond S
  std::string name() const {
    return fmt::format("T={} S={} H={} K={} Dh={} spare={}", T, S, H, K, Dh, spare);
  }
};

/// Queries and a history of random numbers; the cache has NaN in its spare room.
template <class KV>
struct Problem {
  Case c;
  std::vector<float> q;
  std::vector<KV> k, v;
  float scale;

  explicit Problem(Case shape, float magnitude = 1)
      : c(shape), scale(1 / std::sqrt(float(c.Dh))) {
    Rng rng(7);
    q = random_floats(rng, c.T * c.H * c.Dh, magnitude);
    for (std::vector<KV>* x : {&k, &v}) {
      for (std::int64_t i = 0; i < c.S * c.K * c.Dh; ++i)
        x->push_back(from_float<KV>(float(rng.normal())));
      x->resize(std::size_t((c.S + c.spare) * c.K * c.Dh), from_float<KV>(NAN));
    }
  }

  std::vector<float> expected() const {
    std::vector<float> out(q.size());
    cpu::reference::attention<KV>(
        {out.data(), {c.T, c.H, c.Dh}}, {q.data(), {c.T, c.H, c.Dh}},
        {k.data(), {c.S, c.K, c.Dh}}, {v.data(), {c.S, c.K, c.Dh}}, scale);
    return out;
  }

  /// Queries [begin, end) of the T.
  std::vector<float> result(std::int64_t begin, std::int64_t end) const {
    const DeviceArray<float> dq(
        std::vector<float>(q.begin() + begin * c.H * c.Dh, q.begin() + end * c.H * c.Dh));
    const DeviceArray<KV> dk(k), dv(v);
    const DeviceArray<std::int32_t> kv_len({std::int32_t(c.S - c.T + end)});
    const auto out = DeviceArray<float>::output((end - begin) * c.H * c.Dh);
    gpu::attention<KV>(
        out.view({end - begin, c.H, c.Dh}), dq.view({end - begin, c.H, c.Dh}),
        dk.view({c.S + c.spare, c.K, c.Dh}), dv.view({c.S + c.spare, c.K, c.Dh}), scale,
        kv_len.view({1}), stream());
    REQUIRE(out.intact());
    return out.host();
  }
  std::vector<float> result() const { return result(0, c.T); }
};

template <class KV>
void check(const Case& c, float magnitude = 1, double relative = 1e-4) {
  INFO(c.name());
  const Problem<KV> p(c, magnitude);
  REQUIRE(lab::test::mismatch(p.result(), p.expected(), 1e-5 * magnitude, relative) == "");
}

template <class KV>
void check_all(std::initializer_list<Case> cases) {
  for (const Case& c : cases) check<KV>(c);
}

}  // namespace

LAB_PARITY(attention, "few queries: every kind of head, history and storage type") {
  for (const std::int64_t S : {5, 255, 256, 257, 700}) {
    if (kTraced && S == 700) continue;
    for (const std::int64_t T : {1, 2, 3, 4}) {
      check<Half>({T, S, 6, 2, 64});
      check<BFloat16>({T, S, 4, 4, 32, 40});
      check<float>({T, S, 2, 1, 128, 300});
    }
  }
}

LAB_PARITY(attention, "few queries: odd head sizes and large groups") {
  for (const std::int64_t Dh : {8, 24, 40, 64, 80, 96, 128, 136, 256}) {
    check<Half>({1, 70, 4, 2, Dh, 3});
    check<BFloat16>({3, 300, 7, 1, Dh});
    check<float>({2, 33, 3, 3, Dh, 1});
  }
  check_all<Half>({{1, 1, 1, 1, 64}, {4, 4, 16, 2, 32}, {2, 65, 9, 1, 16, 999}});
}

LAB_PARITY(attention, "many queries: every kind of head, history and storage type") {
  for (const std::int64_t T : {5, 17, 33, 65}) {
    check<Half>({T, T, 6, 2, 64});
    check<BFloat16>({T, T + 1, 4, 4, 32, 40});
    check<float>({T, T + 63, 2, 1, 128, 70});
  }
  if (kTraced) return;
  check_all<float>({{130, 130, 1, 1, 64}, {5, 700, 3, 1, 64, 30}, {65, 257, 2, 2, 64}});
  check_all<Half>({{100, 256, 8, 2, 128}, {40, 255, 3, 1, 96}});
}

LAB_PARITY(attention, "many queries: odd head sizes") {
  for (const std::int64_t Dh : {8, 24, 40, 64, 80, 96, 128, 136, 256}) {
    check<Half>({5, 70, 2, 1, Dh, 3});
    check<BFloat16>({7, 30, 3, 1, Dh});
    check<float>({6, 33, 2, 2, Dh, 1});
  }
}

LAB_PARITY(attention, "scores of 1e4 do not overflow, and the largest takes all") {
  for (const std::int64_t T : {1, 3, 40})
    for (const std::int64_t S : {50, 300}) {
      Problem<float> p({T, S, 2, 1, 32});
      for (std::int64_t i = 0; i < std::int64_t(p.q.size()); ++i)
        p.q[std::size_t(i)] = i % 32 == 0 ? 1e4f : 0;
      for (std::int64_t s = 0; s < S; ++s)
        p.k[std::size_t(s * 32)] = s == 7 ? 1.0f : s % 2 ? -1.0f : 0.5f;
      p.scale = 1;
      CAPTURE(T, S);
      const std::vector<float> out = p.result();
      for (std::int64_t i = 0; i < std::int64_t(out.size()); ++i)
        REQUIRE(out[std::size_t(i)] == p.v[std::size_t(7 * 32 + i % 32)]);
    }
}

LAB_PARITY(attention, "infinite and undefined inputs do what they do on the CPU") {
  for (const std::int64_t T : {1, 3, 20})
    for (const std::int64_t S : {20, 290})
      for (const float bad : {NAN, INFINITY, -INFINITY})
        for (const int where : {0, 1, 2, 3}) {
          CAPTURE(T, S, bad, where);
          Problem<float> p({T, S, 4, 2, 32, 8});
          const auto row = [&](std::int64_t s) { return std::size_t((s * 2 + 1) * 32); };
          if (where == 0) p.q[std::size_t((T / 2 * 4 + 1) * 32 + 5)] = bad;
          if (where == 1) p.k[row(S - 1 - T / 2) + 3] = bad;
          if (where == 2) p.v[row(S - 1 - T / 2) + 3] = bad;
          // Scores of -infinity from the first key on, which must not count.
          if (where == 3)
            for (std::int64_t s = 0; s < S - T; ++s) p.k[row(s) + 3] = bad;
          REQUIRE(lab::test::mismatch(p.result(), p.expected(), 1e-5, 1e-4) == "");
        }
}

LAB_PARITY(attention, "a query's bits do not depend on the others, nor on the room") {
  for (const std::int64_t T : {4, 40}) {
    const Problem<Half> p({T, 290 + T, 6, 2, 64}), roomy({T, 290 + T, 6, 2, 64, 500});
    const std::vector<float> whole = p.result();
    REQUIRE(roomy.result() == whole);
    const std::int64_t part = T == 4 ? 1 : 7, width = 6 * 64;
    for (std::int64_t t = 0; t + part <= T; t += part) {
      CAPTURE(T, t);
      const std::vector<float> alone = p.result(t, t + part);
      REQUIRE(std::memcmp(alone.data(), whole.data() + t * width,
                          alone.size() * sizeof(float)) == 0);
    }
  }
}

LAB_PARITY(attention, "says what it cannot do") {
  const DeviceArray<float> x(std::vector<float>(4096));
  const DeviceArray<std::int32_t> n(std::vector<std::int32_t>{4, 4});
  const auto run = [&](std::int64_t dim, std::int64_t lengths) {
    return message_of([&] {
      gpu::attention<float>(x.view({1, 2, dim}), x.view({1, 2, dim}), x.view({4, 1, dim}),
                            x.view({4, 1, dim}), 1, n.view({lengths}), stream());
    });
  };
  CHECK(run(20, 1) ==
        "attention: head_dim is 20, but on a GPU it must be a multiple of 8, at most 256; "
        "run this model with --device cpu");
  CHECK(run(264, 1).find("head_dim is 264") != std::string::npos);
  CHECK(run(32, 2) ==
        "attention: kv_len has 2 elements; give it one, the number of valid positions");
  CHECK(message_of([&] {
          gpu::attention<float>(x.view({1, 2, 8}), x.view({1, 2, 8}), x.view({4, 1, 8}),
                                x.view({3, 1, 8}), 1, n.view({1}), stream());
        }).find("give both the same shape") != std::string::npos);
}
