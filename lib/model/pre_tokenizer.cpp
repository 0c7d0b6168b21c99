#include "lab/model/pre_tokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

// Unicode's White_Space, as a list: PCRE2's \s also holds U+180E, which has not been white
// space since Unicode 6.3.
#define LAB_SPACE                                                                     \
  R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F})" \
  R"(\x{205F}\x{3000})"
#define LAB_CONTRACTION R"('s|'t|'re|'ve|'m|'ll|'d)"
#define LAB_PUNCTUATION "[^" LAB_SPACE R"(\p{L}\p{N}])"
// A run of white space leaves its last character to the word behind it, if there is one.
#define LAB_SPACES "[" LAB_SPACE "]+(?![^" LAB_SPACE "])|[" LAB_SPACE "]+"

constexpr const char* kGpt2 =
    LAB_CONTRACTION R"(| ?\p{L}+| ?\p{N}+| ?)" LAB_PUNCTUATION "+|" LAB_SPACES;

// GPT-2's pattern on the text between digits, where each digit is a cut of its own: so a
// digit takes no space in front of it, and white space before it counts as at the end of
// the text.
constexpr const char* kSmolLm =
    R"(\p{N}|)" LAB_CONTRACTION R"(| ?\p{L}+| ?)" LAB_PUNCTUATION "+|[" LAB_SPACE
    "]+(?![^" LAB_SPACE R"(\p{N}])|[)" LAB_SPACE "]+";

#define LAB_LLAMA3(numbers)                                                             \
  "(?i:" LAB_CONTRACTION R"()|[^\r\n\p{L}\p{N}]?\p{L}+|)" numbers "| ?" LAB_PUNCTUATION \
  R"(+[\r\n]*|[)" LAB_SPACE R"(]*[\r\n]+|)" LAB_SPACES
constexpr const char* kLlamaBpe = LAB_LLAMA3(R"(\p{N}{1,3})");
constexpr const char* kQwen2 = LAB_LLAMA3(R"(\p{N})");

struct Named {
  std::string_view name;
  const char* pattern;
};
constexpr std::array<Named, 4> kPatterns{
    {{"gpt-2", kGpt2}, {"smollm", kSmolLm}, {"llama-bpe", kLlamaBpe}, {"qwen2", kQwen2}}};

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 200> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
};

PreTokenizer::PreTokenizer(const std::string& name) {
  const char* source = nullptr;
  for (const Named& known : kPatterns)
    if (known.name == name) source = known.pattern;
  LAB_CHECK(
      source != nullptr,
      "the model asks for the pre-tokenizer {}, but only gpt-2, smollm, llama-bpe and "
      "qwen2 are known: use a model with one of these",
      detail::quote(name));
  int error = 0;
  PCRE2_SIZE where = 0;
  auto pattern = std::make_unique<Pattern>();
  pattern->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source), PCRE2_ZERO_TERMINATED,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &where, nullptr));
  LAB_CHECK(
      pattern->code != nullptr,
      "PCRE2 refuses the pattern of pre-tokenizer '{}': {}; it needs PCRE2 with Unicode "
      "support",
      name, message_of(error));
  // Where no machine code can be made (hardened systems), PCRE2 interprets: same result.
  pcre2_jit_compile(pattern->code.get(), PCRE2_JIT_COMPLETE);
  pattern->context.reset(pcre2_match_context_create(nullptr));
  LAB_CHECK(pattern->context != nullptr, "out of memory for the pre-tokenizer");
  // The default limit would refuse white space of ten million characters; no pattern above
  // needs more than a few steps for each character.
  pcre2_set_match_limit(pattern->context.get(), std::numeric_limits<std::uint32_t>::max());
  pattern_ = std::move(pattern);
}

PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> words;
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create(1, nullptr));
  LAB_CHECK(match != nullptr, "out of memory for the pre-tokenizer");
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  for (std::size_t begin = 0; begin < text.size();) {
    const int found = pcre2_match(pattern_->code.get(), subject, text.size(), begin,
                                  PCRE2_NO_UTF_CHECK, match.get(), pattern_->context.get());
    LAB_CHECK(found > 0, "PCRE2 cannot split the text at byte {}: {}", begin,
              message_of(found));
    const std::size_t end = pcre2_get_ovector_pointer(match.get())[1];
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

}  // namespace lab
