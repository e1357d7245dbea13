#pragma once

#include "core/base/bytes.hpp"

namespace coop {

// [begin, end) in the pool.
struct ByteRange {
  Bytes begin = 0;
  Bytes end = 0;
};

}  // namespace coop
