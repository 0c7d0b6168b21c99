#include "lab/kernels/embedding.hpp"

#include "lab/core/parallel.hpp"
#include "lab/kernels/check.hpp"
#include "lab/kernels/dequantize.hpp"

namespace lab::cpu {

// [region definition]
void reference::embedding(HostView<float, 2> out, HostView<const std::int32_t, 1> ids,
                          HostWeightView table) {
  check_embedding(out.shape, ids.shape, table.dtype, table.rows, table.cols);
  check_ids(ids, table.rows);
  for (std::int64_t t = 0; t < ids.shape[0]; ++t)
    dequantize(out[t], table.dtype, table.row(ids[t]));
}
// [endregion]

void embedding(HostView<float, 2> out, HostView<const std::int32_t, 1> ids,
               HostWeightView table) {
  check_embedding(out.shape, ids.shape, table.dtype, table.rows, table.cols);
  check_ids(ids, table.rows);
  // A row is 1/rows of what the first linear layer reads: decoding it needs no speed of its
  // own.
  parallel_for(ids.shape[0], 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      reference::dequantize(out[t], table.dtype, table.row(ids[t]));
  });
}

}  // namespace lab::cpu
