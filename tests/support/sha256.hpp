/// @file
/// SHA-256, to compare files with recorded hashes. Source: FIPS 180-4.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lab::test {

namespace detail {

/// The first 32 bits of the fraction of root(p), for the first N primes p.
template <std::size_t N, class Root>
std::array<std::uint32_t, N> prime_root_fractions(Root root) {
  std::array<std::uint32_t, N> out{};
  std::size_t n = 0;
  for (std::uint32_t p = 2; n < N; ++p) {
    bool prime = true;
    for (std::uint32_t d = 2; d * d <= p; ++d) prime = prime && p % d != 0;
    if (!prime) continue;
    const long double r = root(static_cast<long double>(p));
    out[n++] = static_cast<std::uint32_t>((r - std::floor(r)) * 4294967296.0L);
  }
  return out;
}

inline void sha256_block(std::array<std::uint32_t, 8>& state, const std::byte* block) {
  static const auto k =
      prime_root_fractions<64>([](long double p) { return std::cbrt(p); });
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 64; ++i)
    w[i / 4 % 16] = w[i / 4 % 16] << 8 | std::uint32_t(block[i]);
  const auto rotate = [](std::uint32_t v, int n) { return std::rotr(v, n); };
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                             ((e & f) ^ (~e & g)) + k[i] + w[i];
    const std::uint32_t t2 =
        (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> add = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace detail

/// @return 64 hexadecimal digits
inline std::string sha256(std::span<const std::byte> bytes) {
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  padded.push_back(std::byte{0x80});
  padded.resize((padded.size() + 8 + 63) / 64 * 64);
  for (std::size_t i = 0; i < 8; ++i)
    padded[padded.size() - 1 - i] = std::byte(bytes.size() * 8 >> (8 * i));
  auto state = detail::prime_root_fractions<8>([](long double p) { return std::sqrt(p); });
  for (std::size_t i = 0; i < padded.size(); i += 64)
    detail::sha256_block(state, padded.data() + i);
  std::string out;
  for (const std::uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4)
      out += "0123456789abcdef"[word >> shift & 15];
  return out;
}

/// @param hex  an even number of lower-case hexadecimal digits
inline std::vector<std::byte> from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(std::byte(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return out;
}

}  // namespace lab::test
