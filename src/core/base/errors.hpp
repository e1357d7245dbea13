#pragma once

#include <stdexcept>
#include <string>

namespace coop {

// Errors come in three kinds, so that whoever catches one knows whose turn it is:
//   InvalidArgument   the caller asked for something that makes no sense; nothing has changed
//   OutOfMemory       the request cannot be served (core/engine/out_of_memory.hpp, with the facts)
//   InternalError     an invariant of ours is broken: a bug in coop
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InvalidArgument : public Error {
 public:
  using Error::Error;
};

class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace coop
