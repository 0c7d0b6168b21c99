/// @file
/// Which tokens end an answer. Private to lib/model.
#pragma once

#include <cstdint>
#include <span>

#include "lab/model/vocab.hpp"

namespace lab::detail {

/// Fills `vocab.end_of_generation` with vocab.eos, `more`, and every control token whose
/// text chat models are known to end with; model files often name only one of them.
void set_end_of_generation(Vocab& vocab, std::span<const std::int32_t> more);

}  // namespace lab::detail
