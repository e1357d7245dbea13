// The operator itself.
#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/Context.h>

#include "plugin/dispatch_key.hpp"
#include "plugin/intercepted_call.hpp"

namespace coop::plugin {

// Note [A second try]
//
// What an operator reads must stay where it is while it runs, and may lie so that no piece between is long
// enough for what it makes, though there would be room. If all that it does is to make something, it can be
// run once more, after what it reads has been moved aside. So whether it is out of memory depends on how much
// there is, and not on where things happen to lie. One that may draw numbers can as long as it has not drawn any:
// most take their memory first, and the backward pass of attention draws none at all.
void InterceptedCall::run_kernel() {
  if (!can_begin_anew()) return redispatch();
  const c10::SmallVector<c10::IValue, 8> kept(arguments_.begin(), arguments_.end());
  const std::size_t below = stack_.size() - kept.size();
  const std::optional<MemoryReport> no_room = run_kernel_once();
  if (!no_room) return;
  bool is_there_room = true;
  with_torch_errors([&] {
    if (random_ && random_->has_moved()) throw OutOfMemory(*no_room);
    turn_.end();  // to make room is to wait for replays, which may draw
    try {
      make_room(*no_room);
    } catch (const OutOfMemory&) {
      if (!may_take_other_ways()) throw;
      is_there_room = false;
    }
  });
  turn_ = session_.turn_to_draw(facts_.is_random);
  if (random_) random_ = RandomState::of(random_->generator());
  stack_.resize(below);
  stack_.insert(stack_.end(), kept.begin(), kept.end());
  if (is_there_room) return redispatch();
  const OtherWays other_ways;
  redispatch();
}

// What ran before would be run again in that way, too, if it had to be.
bool InterceptedCall::may_take_other_ways() const {
  const std::uint64_t kind = start_->kind;
  return at::globalContext().benchmarkCuDNN() && kind != 0 && !session_.times().has_seen(kind);
}

bool InterceptedCall::can_begin_anew() const {
  return !is_opaque_ && (!facts_.is_random || random_) && facts_.is_replayable &&
         this_thread.unknown_depth == 0 && this_thread.no_room == nullptr && !uses_.empty() &&
         std::all_of(uses_.begin(), uses_.end(),
                     [](const Use& use) { return use.role == Role::kRead; });
}

// Why there was no room in the budget, if there was none.
std::optional<MemoryReport> InterceptedCall::run_kernel_once() {
  std::optional<MemoryReport> no_room;
  this_thread.allocated = 0;
  try {
    const FirstTry first(no_room);
    redispatch();
  } catch (const c10::OutOfMemoryError&) {
    if (!no_room) throw;
  }
  return no_room;
}

// For what it had got, too: it asks for that again.
void InterceptedCall::make_room(const MemoryReport& no_room) {
  const Bytes had = std::min(no_room.held_as(Holder::kBeingMade).bytes, this_thread.allocated);
  try {
    session_.engine().make_room(call_, had + no_room.requested);
  } catch (const OutOfMemory& error) {
    MemoryReport report = error.report();
    report.requested = no_room.requested;
    // What it reads may be evicted by now, and has left room: what counts is how it was when it asked.
    if (report.largest_room >= report.requested) {
      report = no_room;
      report.smallest_budget = std::max(no_room.smallest_budget, error.report().smallest_budget);
    }
    throw OutOfMemory(report);
  }
}

void InterceptedCall::redispatch() {
  const ExpectedCost expected(facts_.last_cost.load(std::memory_order_relaxed));
  if (facts_.kind == OperatorFacts::Kind::kUnknown) {
    // Its body may be Python, or call operators: those we see, but record nothing of.
    struct Inside {
      Inside() { ++this_thread.unknown_depth; }
      Inside(const Inside&) = delete;
      Inside& operator=(const Inside&) = delete;
      ~Inside() { --this_thread.unknown_depth; }
    };
    const Inside inside;
    const OwnTime::Kernel kernel(session_.own_time());
    op_.redispatchBoxed(below_, &stack_);
    return;
  }
  const c10::impl::ExcludeDispatchKeyGuard once(kOurKeys);
  const InsideRegistered inside(facts_.is_registered);
  if (recorded_)
    recorded_->ambience = Ambience::shared_of_this_thread(session_.options().device.type());
  redispatch_or_refuse(session_, op_, below_, stack_);
  // The thread's number has been chosen in the middle of it: a part of it had another one.
  if (recorded_ && !recorded_->ambience->fits_threads()) {
    recorded_ = nullptr;
    taint_ = Taint::kDoesNotRepeat;
  }
}

void redispatch_or_refuse(Session& session, const c10::OperatorHandle& op,
                          c10::DispatchKeySet below, torch::jit::Stack& stack) {
  const std::uint64_t refusals = this_thread.refusals;
  const auto raise_if_refused = [&] {
    if (this_thread.refusals == refusals) return;
    raise_out_of_memory(session.last_refusal());
  };
  try {
    const InsideKernel inside;  // Note [Refusals]
    const OwnTime::Kernel kernel(session.own_time());
    op.redispatchBoxed(below, &stack);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error&) {
    raise_if_refused();
    throw;
  }
  if (!this_thread.takes_other_ways) raise_if_refused();
}

}  // namespace coop::plugin
