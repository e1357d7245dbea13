#pragma once

#include "core/base/errors.hpp"

namespace coop::sim {

// A trace makes no sense, or its file cannot be read or written. The message says where and what.
class TraceError : public Error {
 public:
  using Error::Error;
};

}  // namespace coop::sim
