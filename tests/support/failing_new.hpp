#pragma once

// A program that links failing_new.cpp can make its own operator new fail on demand.

namespace coop::testing {

// While it lives, the allocation with this number (the next is 0) throws std::bad_alloc.
class FailsAt {
 public:
  explicit FailsAt(int allocation);
  FailsAt(const FailsAt&) = delete;
  FailsAt& operator=(const FailsAt&) = delete;
  ~FailsAt();
};

}  // namespace coop::testing
