// Writes valid small files for the fuzz targets to start from: fuzz_seeds FOLDER
#include <filesystem>

#include "lab/core/error.hpp"
#include "support/mini_vocab.hpp"
#include "support/tiny_model.hpp"

namespace {

void write_seeds(const std::filesystem::path& folder) {
  using namespace lab;
  using namespace lab::test;
  for (const char* name : {"fuzz_gguf", "fuzz_safetensors", "fuzz_tokenizer_json"})
    std::filesystem::create_directories(folder / name);

  Config c = tiny_config();  // as small as a model can be: short inputs are mutated faster
  c.n_layers = 1;
  c.model_dim = c.ffn_dim = 2;
  c.n_heads = 2;
  c.n_kv_heads = 1;
  c.head_dim = 2;
  const TinyModel model = make_tiny_model(c, {.dtype = DType::f16, .tied = false});
  tiny_gguf(model).write(folder / "fuzz_gguf" / "model");
  GgufWriter small(8);
  small.add("a", std::vector<std::string>{"x", ""});
  small.add("b", std::vector<bool>{true});
  small.add("c", 0.5);
  small.add_tensor("t", DType::q8_0, {1, 32}, std::vector<std::byte>(34));
  small.add_tensor("u", DType::f32, {}, std::vector<std::byte>(4));
  small.write(folder / "fuzz_gguf" / "small");

  const std::vector<StoredTensor> tensors = {
      {"w", DType::f32, {2, 2}, std::vector<std::byte>(16)},
      {"h", DType::bf16, {3}, std::vector<std::byte>(6)}};
  write_file(folder / "fuzz_safetensors" / "small", safetensors_bytes(tensors));
  write_file(folder / "fuzz_safetensors" / "index",
             R"({"metadata":{"total_size":8},"weight_map":{"w":"a.safetensors"}})");

  write_file(folder / "fuzz_tokenizer_json" / "mini", mini_tokenizer_json());
}

}  // namespace

int main(int argc, char** argv) {
  return lab::guarded_main("fuzz_seeds", [&] {
    if (argc != 2) throw lab::UsageError("usage: fuzz_seeds FOLDER");
    write_seeds(argv[1]);
    return 0;
  });
}
