#include "lab/model/byte_alphabet.hpp"

#include <array>

#include "lab/model/utf8.hpp"

namespace lab {
namespace {

constexpr int kFirstStandIn = 0x100, kStandIns = 68;

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::string, 256> letters;                // byte -> UTF-8
  std::array<int, kFirstStandIn + kStandIns> bytes{};  // code point -> byte or -1
};

std::string encode_letter(int code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

const Alphabet& alphabet() {
  static const Alphabet kAlphabet = [] {
    Alphabet a;
    a.bytes.fill(-1);
    int stand_in = kFirstStandIn;
    for (int byte = 0; byte < 256; ++byte) {
      const int code_point = stands_for_itself(byte) ? byte : stand_in++;
      a.letters[byte] = encode_letter(code_point);
      a.bytes[code_point] = byte;
    }
    return a;
  }();
  return kAlphabet;
}

}  // namespace

const std::string& alphabet_letter(std::uint8_t byte) { return alphabet().letters[byte]; }

std::string to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += alphabet_letter(static_cast<std::uint8_t>(byte));
  return text;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  const auto& bytes = alphabet().bytes;
  std::string result;
  while (!text.empty()) {
    const Utf8Unit unit = next_utf8_unit(text);
    if (!unit.valid || unit.length > 2) return std::nullopt;
    const int code_point =
        unit.length == 1 ? text[0] : ((text[0] & 0x1F) << 6) | (text[1] & 0x3F);
    if (code_point >= static_cast<int>(bytes.size()) || bytes[code_point] < 0)
      return std::nullopt;
    result += static_cast<char>(bytes[code_point]);
    text.remove_prefix(unit.length);
  }
  return result;
}

}  // namespace lab
