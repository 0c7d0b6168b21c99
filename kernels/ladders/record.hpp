/// @file
/// What became of the rungs of a ladder, as a table for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ladders/ladder.hpp"

namespace lab::ladders {

/// What one rung did.
struct Result {
  std::string name = {}, file = {}, idea = {};
  std::string wrong = {};    ///< why the result is not right; empty if it is
  std::string skipped = {};  ///< why it could not run; empty if it did
  std::int64_t bytes = 4;
  std::int64_t least_bytes = 0;
  Traffic predicted = {};
  std::optional<Traffic> counted = {};  ///< of the emulator
  std::optional<double> seconds = {};   ///< on a GPU, the median
};

/// What all the rungs of one ladder did.
struct Record {
  std::string name, formula, about;
  Operation operation;
  Size size;
  bool whole_tiles = true;  ///< predictions hold
  std::vector<Result> rungs = {};
  std::vector<Result> peers = {};  ///< libraries on the same problem
  double bandwidth = 0;            ///< of the GPU, measured: bytes/s
};

/// @return bytes that the kernel asks of global memory
std::int64_t global_bytes(const Traffic& t);
/// @return the share of the measured bandwidth at which the least bytes were moved
double bandwidth_share(const Record& record, const Result& result);
/// @return the seconds of the peer that reads the same format, over those of the rung
std::optional<double> peer_share(const Record& record, const Result& result);

/// @return a table, ending with a new line
std::string table(const Record& record);
/// @return as the pages read it
nlohmann::ordered_json json(const Record& record);

}  // namespace lab::ladders
