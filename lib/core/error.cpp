#include "lab/core/error.hpp"

#include <cstdio>
#include <new>

namespace lab {

int guarded_main(const std::string& program, const std::function<int()>& body) noexcept {
  const auto say = [&](const char* what) {
    std::fflush(stdout);  // so that the message comes after what was already printed
    std::fprintf(stderr, "%s: error: %s\n", program.c_str(), what);
  };
  try {
    return body();
  } catch (const UsageError& e) {
    say(e.what());
    std::fprintf(stderr, "Try '%s --help'.\n", program.c_str());
    return kExitUsage;
  } catch (const UnavailableError& e) {
    say(e.what());
    return kExitUnavailable;
  } catch (const std::bad_alloc&) {
    say("not enough memory; use a smaller model, a shorter context or a smaller batch");
    return kExitFailure;
  } catch (const std::exception& e) {
    say(e.what());
    return kExitFailure;
  }
}

}  // namespace lab
