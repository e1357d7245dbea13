#include "core/base/check.hpp"

#include <string>

#include "core/base/errors.hpp"

namespace coop {

void fail_check(const char* condition, const char* file, int line) {
  throw InternalError(std::string("coop has a bug: ") + condition + " does not hold at " + file +
                      ":" + std::to_string(line));
}

}  // namespace coop
