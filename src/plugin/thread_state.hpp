#pragma once

// What a thread is in the middle of, and who puts it there.

#include <cstdint>
#include <optional>

#include <ATen/core/dispatch/Dispatcher.h>

#include "core/base/bytes.hpp"
#include "core/engine/out_of_memory.hpp"

namespace coop::plugin {

class Session;

struct ThreadState {
  double expected_cost = 0;         // nanoseconds, of the operator that runs
  Bytes allocated = 0;              // since the operator that can be begun anew has begun
  std::uint64_t memory_ns = 0;      // spent in finding memory, which is not the operator's own time
  std::uint64_t kernel_ns = 0;      // spent in kernels, while somebody wants to know (own_time.hpp)
  std::uint32_t unknown_depth = 0;  // inside operators of which we know nothing
  std::uint32_t sessions = 0;       // CurrentSessions of this thread
  std::uint32_t budgets = 0;        // that it has begun and not ended
  bool was_in_scope = false;        // before the first of them
  bool is_unheard = false;          // inside one that was begun at ease
  std::uint32_t registered_depth = 0;  // inside operators that the program answers for
  bool is_replaying = false;           // the engine sees to it if memory runs out
  // Of an operator that can be begun anew: why its first try did not work.
  std::optional<MemoryReport>* no_room = nullptr;
  std::uint64_t refusals = 0;           // requests for memory that were not served
  const Session* refused_by = nullptr;  // the last of them
  std::uint32_t kernel_depth = 0;       // inside operators of which that is seen afterwards
  bool takes_other_ways = false;        // the operator may do with less than it asks for
  bool is_settling = false;             // what is asked for stays for as long as the budget
  const c10::OperatorHandle* running = nullptr;  // the program's operator
};
// Every operator asks: nothing here is to be set up or torn down.
constinit inline thread_local ThreadState this_thread;

// While an operator is tried that can be begun anew.
class FirstTry {
 public:
  explicit FirstTry(std::optional<MemoryReport>& no_room) { this_thread.no_room = &no_room; }
  FirstTry(const FirstTry&) = delete;
  FirstTry& operator=(const FirstTry&) = delete;
  ~FirstTry() { this_thread.no_room = nullptr; }
};

// Note [Refusals]
//
// An operator that is told of a c10::OutOfMemoryError may take another way that needs less, and remember it for next
// time: cuDNN does, and its other algorithms leave other bits. Its arguments may only have to be moved aside, or there
// is to be an error; either way the operator is not to go on by itself. So inside an operator the allocator throws an
// error that nobody expects, and who has run the operator makes of it what it was.
//
// With torch.backends.cudnn.benchmark = True a program asks for the way that is fastest in the memory that there is, and
// cuDNN begins by asking for more than any budget has. Where no room can be made, the operator chooses (OtherWays), the
// first time that there is one of its kind: what it takes then it keeps to, also when it is run again.
class InsideKernel {
 public:
  InsideKernel() { ++this_thread.kernel_depth; }
  InsideKernel(const InsideKernel&) = delete;
  InsideKernel& operator=(const InsideKernel&) = delete;
  ~InsideKernel() { --this_thread.kernel_depth; }
};

class OtherWays {
 public:
  OtherWays() { this_thread.takes_other_ways = true; }
  OtherWays(const OtherWays&) = delete;
  OtherWays& operator=(const OtherWays&) = delete;
  ~OtherWays() { this_thread.takes_other_ways = false; }
};

// cuBLAS has a workspace for every thread and stream, which it keeps, and whose address it knows. It is not to lie where
// the next large tensor should.
class Settling {
 public:
  Settling() { this_thread.is_settling = true; }
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;
  ~Settling() { this_thread.is_settling = false; }
};

class ExpectedCost {
 public:
  explicit ExpectedCost(double cost) : before_(this_thread.expected_cost) {
    this_thread.expected_cost = cost;
  }
  ExpectedCost(const ExpectedCost&) = delete;
  ExpectedCost& operator=(const ExpectedCost&) = delete;
  ~ExpectedCost() { this_thread.expected_cost = before_; }

 private:
  double before_;
};

// Whose addresses the operator takes, it does not keep.
class InsideRegistered {
 public:
  explicit InsideRegistered(bool is_registered) : depth_(is_registered ? 1 : 0) {
    this_thread.registered_depth += depth_;
  }
  InsideRegistered(const InsideRegistered&) = delete;
  InsideRegistered& operator=(const InsideRegistered&) = delete;
  ~InsideRegistered() { this_thread.registered_depth -= depth_; }

 private:
  std::uint32_t depth_;
};

// While an operator runs that was begun at ease.
class Unheard {
 public:
  explicit Unheard(bool at_ease) : before_(this_thread.is_unheard) {
    this_thread.is_unheard = before_ || at_ease;
  }
  Unheard(const Unheard&) = delete;
  Unheard& operator=(const Unheard&) = delete;
  ~Unheard() { this_thread.is_unheard = before_; }

 private:
  bool before_;
};

class Running {
 public:
  explicit Running(const c10::OperatorHandle& op) : before_(this_thread.running) {
    this_thread.running = &op;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { this_thread.running = before_; }

 private:
  const c10::OperatorHandle* before_;
};

}  // namespace coop::plugin
