/// @file
/// The one seam for threads. Backed by oneTBB: on a quiet machine as fast as OpenMP, and on
/// a busy one it keeps working where a statically divided OpenMP region waits for its
/// slowest thread.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lab {

/// @return the physical cores that this process may use; the default for set_n_threads
int default_n_threads();

/// Sets how many threads parallel_for uses from now on.
/// @throws Error unless 1 <= n <= 1024
void set_n_threads(int n);
/// @return how many threads parallel_for uses
int n_threads();

namespace detail {
using RangeFunction = void (*)(void* context, std::int64_t begin, std::int64_t end);
void parallel_for(std::int64_t n, std::int64_t grain, RangeFunction f, void* context);
}  // namespace detail

/// Calls body(begin, end) for ranges that together cover [0, n) exactly once, on up to
/// n_threads() threads. A range holds at most `grain` items (the last may be shorter);
/// ranges are claimed as threads become free. With one thread, body(0, n) runs in place.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::parallel_for(
      n, grain,
      [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<Plain*>(context))(begin, end);
      },
      const_cast<std::remove_const_t<Plain>*>(&body));
}

}  // namespace lab
