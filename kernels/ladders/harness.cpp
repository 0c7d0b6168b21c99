#include "ladders/harness.hpp"

namespace lab::ladders {
namespace {

Result run(const Bench& bench, const Ladder& ladder, const Rung& rung, Size size,
           Problem& problem) {
  Result result{.name = rung.name,
                .file = rung.file,
                .idea = rung.idea,
                .skipped = unsupported(rung, size),
                .bytes = rung.bytes,
                .least_bytes = least_bytes(ladder, rung, size)};
  if (!result.skipped.empty()) return result;
  if (rung.predict) result.predicted = rung.predict(size);
  if (bench.count)
    result.counted = bench.count([&] { problem.run(rung); });
  else
    problem.run(rung);
  result.wrong = problem.check();
  if (bench.time && result.wrong.empty())
    result.seconds = bench.time(rung, problem.operands(), nullptr);
  return result;
}

}  // namespace

Record climb(const Bench& bench, const Ladder& ladder, Size size) {
  Record record{.name = ladder.name,
                .formula = ladder.formula,
                .about = ladder.about,
                .operation = ladder.operation,
                .size = size,
                .bandwidth = bench.bandwidth};
  record.whole_tiles = size.T % ladder.tile.T == 0 && size.N % ladder.tile.N == 0 &&
                       size.K % ladder.tile.K == 0;
  Problem problem(bench.gpu, ladder.operation, size);
  for (const Rung& rung : ladder.rungs)
    record.rungs.push_back(run(bench, ladder, rung, size, problem));
  if (ladder.operation == Operation::multiply)
    for (const Rung& peer : bench.peers)
      record.peers.push_back(run(bench, ladder, peer, size, problem));
  return record;
}

}  // namespace lab::ladders
