#pragma once

// Whether memory is so ample that nothing has to be recorded.
//
// Note [At ease]
//
// To be able to evict, coop hears of every operator: which storages it reads and writes, how it could be run
// again. That costs a microsecond or a few each, which a program notices whose operators are small. So a program
// that has got along with half of its budget, and for as long as it had run before, is left at ease: what its
// operators make is raw memory (session.hpp), which neither goes nor moves; nothing is known of it, and so
// nothing has to be heard.
//   - It begins when no other thread is inside an operator. Every lineage ends, which costs nothing since nothing
//     is evicted, and every storage is handed back to become raw memory. What must not be taken for ordinary later
//     (its address is known, others have a hand in it) stays the engine's, in its place for good.
//   - It ends when more is held than ever before: that is noticed where memory is asked for. From the next
//     operator on everything is heard, and before that what was made at ease becomes storages again, with contents
//     from outside, which can be moved. At most half of the budget cannot be evicted then, for as long as the program
//     holds on to it. An operator that is refused memory at ease is begun anew, and heard, if it does nothing but
//     make something.
//   - Raw memory that becomes a storage while some thread may yet run an operator that began at ease stays in its
//     place for good: that operator has not told anybody what it uses. So does what has outlived a scope, where anyone
//     may have asked for its address.
// Where the budget has once had to evict, nobody is at ease any more.

#include <atomic>
#include <cstdint>

#include "core/base/bytes.hpp"

namespace coop::plugin {

class Ease {
 public:
  explicit Ease(Bytes pool) : most_(pool / 2) {}

  // Before an operator: by a thread that counts as inside one already.
  [[nodiscard]] bool is_on() const { return is_on_.load(); }
  // Some operators that began while it was may still run. Not to be forgotten while it is on.
  [[nodiscard]] bool may_have_stragglers() const { return may_have_stragglers_.load(); }
  void forget_stragglers() noexcept { may_have_stragglers_ = false; }

  // So many bytes are held after so many operators.
  void note(Bytes held, std::uint64_t operators) noexcept {
    if (held <= enough_.load(std::memory_order_relaxed)) return;
    enough_ = held + held / kMargin;
    since_ = operators;
    end();
  }
  [[nodiscard]] bool is_due(std::uint64_t operators) const noexcept {
    return operators >= 2 * since_.load(std::memory_order_relaxed) + kLeast && !is_on() &&
           enough_.load(std::memory_order_relaxed) <= most_;
  }
  // What begins now is a straggler once it has ended.
  void begin() noexcept {
    may_have_stragglers_ = true;
    is_on_ = true;
  }
  void end() noexcept { is_on_ = false; }
  // It could not begin: not before the program has run for as long again.
  void postpone(std::uint64_t operators) noexcept { since_ = operators; }

 private:
  static constexpr Bytes kMargin = 8;            // a little more every time is no news
  static constexpr std::uint64_t kLeast = 1000;  // operators

  const Bytes most_;
  std::atomic<Bytes> enough_ = 0;
  std::atomic<std::uint64_t> since_ = 0;
  std::atomic<bool> is_on_ = false;
  std::atomic<bool> may_have_stragglers_ = false;
};

}  // namespace coop::plugin
