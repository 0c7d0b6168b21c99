#include "ladders/record.hpp"

#include <fmt/format.h>

namespace lab::ladders {
namespace {

using Json = nlohmann::ordered_json;

Json json(const Traffic& t) {
  Json out;
  for (const auto& [name, unit, access] :
       {std::tuple("global_load", "sectors", t.global_load),
        std::tuple("global_store", "sectors", t.global_store),
        std::tuple("shared_load", "wavefronts", t.shared_load),
        std::tuple("shared_store", "wavefronts", t.shared_store)})
    out[name] = {{"requests", access.requests}, {unit, access.units}};
  return out;
}

Json json(const Record& record, const Result& r) {
  Json out{{"name", r.name}, {"file", "kernels/ladders/" + r.file}, {"idea", r.idea}};
  if (!r.skipped.empty()) out["skipped"] = r.skipped;
  if (!r.wrong.empty()) out["wrong"] = r.wrong;
  out["least_bytes"] = r.least_bytes;
  if (record.whole_tiles) out["predicted"] = json(r.predicted);
  if (r.counted) out["counted"] = json(*r.counted);
  if (r.seconds) {
    out["microseconds"] = *r.seconds * 1e6;
    out["bandwidth_share"] = bandwidth_share(record, r);
    if (const auto share = peer_share(record, r)) out["peer_share"] = *share;
  }
  return out;
}

std::string counted_line(const Record& record, const Result& r) {
  const Traffic& c = *r.counted;
  const bool right = c == r.predicted;
  std::string line =
      fmt::format("{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7.2f}  {}",
                  c.global_load.requests, c.global_load.units, c.global_store.units,
                  c.shared_load.requests, c.shared_load.units, c.shared_store.units,
                  double(global_bytes(c)) / double(r.least_bytes),
                  !record.whole_tiles ? ""
                  : right             ? "as predicted"
                                      : "NOT AS PREDICTED");
  if (record.whole_tiles && !right) {
    const Traffic& p = r.predicted;
    line +=
        fmt::format("\n{:24}{:>10} {:>10} {:>10} {:>10} {:>10} {:>10}          predicted",
                    "", p.global_load.requests, p.global_load.units, p.global_store.units,
                    p.shared_load.requests, p.shared_load.units, p.shared_store.units);
  }
  return line;
}

std::string timed_line(const Record& record, const Result& r) {
  const double flop =
      2.0 * double(record.size.T) * double(record.size.N) * double(record.size.K);
  const auto share = peer_share(record, r);
  return fmt::format("{:>11.1f} {:>10} {:>13.1f} {:>12}", *r.seconds * 1e6,
                     record.operation == Operation::multiply
                         ? fmt::format("{:.2f}", flop / *r.seconds / 1e12)
                         : "",
                     100 * bandwidth_share(record, r),
                     share ? fmt::format("{:.1f}", 100 * *share) : "");
}

}  // namespace

std::int64_t global_bytes(const Traffic& t) {
  return kSectorBytes * (t.global_load.units + t.global_store.units);
}

double bandwidth_share(const Record& record, const Result& r) {
  return double(r.least_bytes) / r.seconds.value() / record.bandwidth;
}

std::optional<double> peer_share(const Record& record, const Result& r) {
  for (const Result& peer : record.peers)
    if (peer.bytes == r.bytes) return peer.seconds.value() / r.seconds.value();
  return std::nullopt;
}

std::string table(const Record& record) {
  const bool timed = !record.rungs.empty() && record.rungs.front().seconds.has_value();
  std::string out =
      fmt::format("{}: {}, T = {}, N = {}, K = {}\n", record.name, record.formula,
                  record.size.T, record.size.N, record.size.K);
  out += fmt::format("{:24}", "");
  out += timed ? fmt::format("{:>11} {:>10} {:>13} {:>12}\n", "us", "TFLOP/s",
                             "% bandwidth", "% of cuBLAS")
               : fmt::format(
                     "{:>21} {:>10} {:>21} {:>10} {:>7}\n{:24}{:>10} {:>10} {:>10} "
                     "{:>10} {:>10} {:>10} {:>7}\n",
                     "global loads", "stores", "shared loads", "stores", "bytes/", "",
                     "requests", "sectors", "sectors", "requests", "wavefronts",
                     "wavefronts", "least");
  int number = 0;
  for (const auto* results : {&record.rungs, &record.peers})
    for (const Result& r : *results) {
      const bool peer = results == &record.peers;
      out += fmt::format("{:<24}",
                         peer ? "  " + r.name : fmt::format("{} {}", ++number, r.name));
      out += !r.skipped.empty() ? "skipped: " + r.skipped
             : !r.wrong.empty() ? "WRONG: " + r.wrong
             : r.seconds        ? timed_line(record, r)
                                : counted_line(record, r);
      out += '\n';
    }
  return out;
}

Json json(const Record& record) {
  Json rungs = Json::array(), peers = Json::array();
  for (const Result& r : record.rungs) rungs.push_back(json(record, r));
  for (const Result& r : record.peers) peers.push_back(json(record, r));
  Json out{{"name", record.name},
           {"formula", record.formula},
           {"about", record.about},
           {"size", {{"T", record.size.T}, {"N", record.size.N}, {"K", record.size.K}}},
           {"rungs", rungs}};
  if (record.bandwidth > 0) {
    out["bandwidth_gb_s"] = record.bandwidth * 1e-9;
    out["peers"] = peers;
  }
  return out;
}

}  // namespace lab::ladders
