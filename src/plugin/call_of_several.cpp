#include "plugin/call_of_several.hpp"

#include <algorithm>
#include <optional>

#include "plugin/dispatch_key.hpp"
#include "plugin/light_call.hpp"
#include "plugin/tensor_parts.hpp"
#include "plugin/warnings.hpp"

namespace coop::plugin {

void CallOfSeveral::run(std::span<Session* const> sessions) {
  const Running running(op_);
  for (Session* session : sessions) session->look_at_pace();
  Concerned hearing;
  Concerned at_ease;
  for (Session* session : sessions) {
    const bool is_light = !is_opaque_ && is_light_at_ease(*session, facts_, stack_);
    (is_light ? at_ease : hearing).push_back(session);
  }
  if (at_ease.empty() || !try_at_ease(hearing)) {
    hearing = Concerned(sessions.begin(), sessions.end());
    at_ease.clear();
    run_heard(hearing);
  }
  for (Session* session : at_ease) note_owners(*session);
  if (this_thread.unknown_depth == 0) {
    for (Session* session : hearing) session->between_operators();
  }
  if (facts_.kind == OperatorFacts::Kind::kUnknown) warn_of_what_is_kept();
}

// Without those that need not hear of it. False, with nothing done, if it was refused memory and can be begun anew: then
// all are to hear of it.
bool CallOfSeveral::try_at_ease(std::span<Session* const> hearing) {
  const Unheard unheard(true);
  const auto run = [&] { hearing.empty() ? run_unheard() : run_heard(hearing); };
  if (!facts_.only_makes || this_thread.no_room != nullptr) {
    run();
    return true;
  }
  const Arguments kept = arguments();
  const std::size_t under = stack_.size() - kept.size();
  std::optional<MemoryReport> no_room;
  try {
    const FirstTry first(no_room);
    run();
    return true;
  } catch (const c10::OutOfMemoryError&) {
    if (!no_room) throw;
  }
  calls_.clear();
  begun_ = 0;
  put_back(kept, under);
  return false;
}

void CallOfSeveral::run_unheard() {
  const ExpectedCost expected(facts_.last_cost.load(std::memory_order_relaxed));
  const c10::impl::ExcludeDispatchKeyGuard once(kOurKeys);
  const TurnToDraw turn = Session::turn_to_draw(facts_.is_random);
  redispatch_or_refuse(*Session::active(), op_, below_, stack_);
}

// What it has made there stays raw memory.
void CallOfSeveral::note_owners(Session& session) {
  session.count_light_operator();
  const auto results = last_of(stack_, op_.schema().returns().size());
  for_each_tensor(results, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    for_each_part(tensor, [&](const at::Tensor& part) {
      if (session.is_large(storage_of(part)->nbytes())) session.note_owner(*storage_of(part));
    });
  });
}

void CallOfSeveral::warn_of_what_is_kept() const {
  std::size_t kept = 0;
  for (const auto& call : calls_) kept = std::max(kept, call->kept_bytes_);
  warn_of_unknown(op_, kept);
}

void CallOfSeveral::run_heard(std::span<Session* const> hearing) {
  for (Session* session : hearing) {
    calls_.push_back(
        std::make_unique<InterceptedCall>(*session, op_, facts_, below_, stack_, is_opaque_));
  }
  try {
    begin();
    run_kernel();
    finish();
  } catch (...) {
    abort();
    throw;
  }
  for (const auto& call : calls_) call->let_go();
}

void CallOfSeveral::begin() {
  with_torch_errors([&] {
    for (const auto& call : calls_) {
      call->session_.count_operator();
      call->session_.look_after_ease();
      call->look_at_arguments();
      call->begin();
      ++begun_;
      call->reads_elsewhere_ = true;  // whatever it does with that
      call->taint_ = call->taint();
    }
  });
  for (const auto& call : calls_) {
    if (call->session_.streams() != nullptr) call->use_on_this_stream();
  }
}

// As InterceptedCall::run_kernel does it (Note [A second try]), with room made by whoever had none.
void CallOfSeveral::run_kernel() {
  InterceptedCall& first = *calls_.front();
  first.turn_ = Session::turn_to_draw(facts_.is_random);
  for (const auto& call : calls_) call->start_ = call->session_.times().begin(0);
  if (!can_begin_anew()) return first.redispatch();
  const Arguments kept = arguments();
  const std::size_t under = stack_.size() - kept.size();
  const std::optional<MemoryReport> no_room = first.run_kernel_once();
  if (!no_room) return;
  with_torch_errors([&] {
    InterceptedCall* call = refused_by(*no_room);
    if (call == nullptr) throw OutOfMemory(*no_room);
    call->make_room(*no_room);
  });
  put_back(kept, under);
  first.redispatch();
}

bool CallOfSeveral::can_begin_anew() const {
  if (facts_.is_random) return false;
  return std::all_of(calls_.begin(), calls_.end(), [](const auto& call) {
    return call->uses_.empty() || call->can_begin_anew();
  });
}

// Null where nothing that it reads is in the way.
InterceptedCall* CallOfSeveral::refused_by(const MemoryReport& no_room) const {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& call) {
    return &call->session_.engine().pool() == no_room.of && !call->uses_.empty();
  });
  return found == calls_.end() ? nullptr : found->get();
}

void CallOfSeveral::finish() {
  c10::SmallVector<double, 2> costs;
  for (const auto& call : calls_) {
    costs.push_back(call->session_.times().end(*call->start_));
    call->start_.reset();
  }
  calls_.front()->end_drawing();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    calls_[i]->finish_run(costs[i]);
  }
}

void CallOfSeveral::abort() noexcept {
  for (std::size_t i = 0; i < begun_; ++i) calls_[i]->abort();
}

CallOfSeveral::Arguments CallOfSeveral::arguments() const {
  const auto all = last_of(stack_, op_.schema().arguments().size());
  return {all.begin(), all.end()};
}

void CallOfSeveral::put_back(const Arguments& arguments, std::size_t under) {
  stack_.resize(under);
  stack_.insert(stack_.end(), arguments.begin(), arguments.end());
}

}  // namespace coop::plugin
