#include "lab/model/model.hpp"

#include <utility>

#include "lab/model/find_model.hpp"

namespace lab {
namespace {

void release_pages(const ModelSource& source, HostWeightView w) {
  for (const MappedFile& file : source.files) {
    const auto bytes = file.bytes();
    if (w.data >= bytes.data() && w.data < bytes.data() + bytes.size())
      file.release({w.data, static_cast<std::size_t>(w.bytes())});
  }
}

}  // namespace

Model::Model(ModelSource source, Device& device)
    : source_(std::move(source)),
      tokenizer_(std::move(source_.vocab)),
      transformer_(source_.config, source_.weights, device,
                   [&](HostWeightView w) { release_pages(source_, w); }) {}

std::unique_ptr<Model> load_model(const std::string& model, Device& device) {
  return std::make_unique<Model>(open_model(find_model(model)), device);
}

}  // namespace lab
