#pragma once

// A program that links failing_new.cpp can make its own operator new fail on demand, and knows how
// much it holds.

#include <cstddef>
#include <utility>

namespace coop::testing {

// While it lives, the allocation with this number (the next is 0) throws std::bad_alloc, once.
class FailsAt {
 public:
  explicit FailsAt(int allocation);
  FailsAt(const FailsAt&) = delete;
  FailsAt& operator=(const FailsAt&) = delete;
  ~FailsAt();
  // How many allocations there were so far.
  [[nodiscard]] int seen() const;

 private:
  int allocation_;
};

// Bytes that operator new has given out and not got back.
std::size_t bytes_in_use();

// How many there were at once since this was made, at the most, beyond those that there were then. One at a time.
class MostBytes {
 public:
  MostBytes();
  [[nodiscard]] std::size_t so_far() const;

 private:
  std::size_t before_;
};

inline bool is_spared = false;  // NOLINT(readability-identifier-naming): a test's own global

// Tests that look at one part of a program only: while Spared lives, allocations neither count nor
// fail; while Exposed does, they do. The innermost decides.
class Spared {
 public:
  Spared() : before_(std::exchange(is_spared, true)) {}
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;
  ~Spared() { is_spared = before_; }

 private:
  bool before_;
};
class Exposed {
 public:
  Exposed() : before_(std::exchange(is_spared, false)) {}
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;
  ~Exposed() { is_spared = before_; }

 private:
  bool before_;
};

}  // namespace coop::testing
