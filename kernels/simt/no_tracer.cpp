#include "simt/tracer.hpp"

namespace emulator {

Tracer* tracer() { return nullptr; }

}  // namespace emulator
