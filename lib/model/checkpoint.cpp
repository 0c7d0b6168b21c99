#include "lab/model/checkpoint.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "lab/core/error.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Checkpoint::Checkpoint(std::vector<TensorInfo> tensors) : tensors_(std::move(tensors)) {
  by_name_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    LAB_CHECK(by_name_.emplace(tensors_[i].name, i).second,
              "tensor {} occurs twice; every tensor of a model needs its own name",
              detail::quote(tensors_[i].name));
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

void Checkpoint::throw_missing(std::string_view name) const {
  // The tensor that shares the most leading characters is the likeliest to have been meant.
  const TensorInfo* nearest = nullptr;
  std::size_t best = 0;
  for (const TensorInfo& t : tensors_) {
    const auto same = std::mismatch(name.begin(), name.end(), t.name.begin(), t.name.end());
    const auto common = static_cast<std::size_t>(same.first - name.begin());
    if (nearest == nullptr || common > best) nearest = &t, best = common;
  }
  throw Error(fmt::format(
      "tensor '{}' is missing: the file has {} tensors{}; use a complete Llama-style model",
      name, tensors_.size(),
      nearest ? fmt::format(", the nearest name is {}", detail::quote(nearest->name))
              : ""));
}

const TensorInfo& Checkpoint::bind(std::string_view name, std::span<const DType> allowed,
                                   std::span<const std::int64_t> shape) const {
  const TensorInfo* tensor = find(name);
  if (tensor == nullptr) throw_missing(name);
  LAB_CHECK(
      std::ranges::equal(tensor->shape, shape),
      "tensor '{}': expected shape {}, found {}; the file's metadata and tensors do not "
      "belong together",
      name, shape_text(shape), shape_text(tensor->shape));
  LAB_CHECK(
      tensor->dtype.has_value(),
      "tensor '{}' has type {}, which decodelab can list but not compute with; use a file "
      "with a supported type, such as F16, Q8_0 or Q4_K",
      name, tensor->type_name);
  if (!allowed.empty() && std::ranges::find(allowed, *tensor->dtype) == allowed.end()) {
    std::vector<std::string_view> names;
    for (const DType dtype : allowed) names.push_back(lab::name(dtype));
    throw Error(fmt::format("tensor '{}': expected type {}, found {}", name,
                            fmt::join(names, " or "), tensor->type_name));
  }
  return *tensor;
}

}  // namespace lab
