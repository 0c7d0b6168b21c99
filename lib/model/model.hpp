/// @file
/// A model ready to run: its configuration, tokenizer and Transformer.
#pragma once

#include <memory>
#include <string>

#include "lab/model/model_source.hpp"
#include "lab/model/tokenizer.hpp"
#include "lab/model/transformer.hpp"

namespace lab {

/// Owns the mapped files and everything built from them.
class Model {
 public:
  /// Packs the weights; each weight's pages of the file are dropped from memory behind it,
  /// so that the peak is one copy of the weights.
  /// @param device  where it runs; must outlive the model
  explicit Model(ModelSource source, Device& device = cpu_device());

  const Config& config() const { return source_.config; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  Device& device() const { return transformer_.device(); }
  Transformer& transformer() { return transformer_; }
  const Transformer& transformer() const { return transformer_; }

 private:
  ModelSource source_;
  Tokenizer tokenizer_;
  Transformer transformer_;
};

/// @param model   as find_model() takes it
/// @param device  where it runs; must outlive the model
/// @throws Error if it cannot be found, read or used
std::unique_ptr<Model> load_model(const std::string& model, Device& device = cpu_device());

}  // namespace lab
