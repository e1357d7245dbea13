#include "sim/trace/engine_recorder.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace coop::sim {

using Kind = PendingRequest::Kind;

EngineRecorder::EngineRecorder(With with, Describe describe, Decisions decisions)
    : with_(std::move(with)),
      describe_(std::move(describe)),
      notes_decisions_(decisions == Decisions::kNoted) {}

EngineRecorder::~EngineRecorder() {
  if (engine_ != nullptr) engine_->observe(nullptr, nullptr);
}

void EngineRecorder::attach_to(Engine& engine) {
  builder_.set_recorded_with({.budget = with_.budget,
                              .small_limit = with_.small_limit,
                              .most_slowdown = with_.most_slowdown,
                              .policy = builder_.name(with_.policy),
                              .has_decisions = notes_decisions_,
                              .is_late = engine.held_bytes() > 0 || engine.stats().calls > 0});
  EngineObserver* events = notes_decisions_ ? this : nullptr;
  engine.observe(events, this);
  engine_ = &engine;
}

Trace EngineRecorder::detach() {
  std::exchange(engine_, nullptr)->observe(nullptr, nullptr);
  const std::scoped_lock lock(mutex_);
  note([&] {
    while (!open_.empty()) {
      const std::uint64_t call = open_.back();
      pending_.add({.request = {.kind = EngineRequest::Kind::kAbort, .call = call}});
      close(call);
    }
    write_if_nothing_runs();
  });
  if (!failure_.empty()) throw TraceError("the recording is not complete: " + failure_);
  return builder_.finish();
}

void EngineRecorder::begin_step() {
  const std::scoped_lock lock(mutex_);
  note([&] { pending_.add({.kind = Kind::kStep}); });
}

void EngineRecorder::annotate(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  if (builder_.name(text) == kNoName) throw TraceError("a remark needs a text");
  note([&] { pending_.add({.kind = Kind::kAnnotate, .text = std::string(text)}); });
}

void EngineRecorder::name_storage(StorageId storage, std::string_view text) {
  const std::scoped_lock lock(mutex_);
  if (builder_.name(text) == kNoName) throw TraceError("a storage needs a name that is not empty");
  note([&] {
    pending_.add({.kind = Kind::kName, .request = {.storage = storage}, .text = std::string(text)});
  });
}

// The engine must not fail because of us: whoever wants the trace is told.
template <typename Function>
void EngineRecorder::note(Function&& fn) noexcept {
  if (!failure_.empty()) return;
  try {
    fn();
    write_if_nothing_runs();
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

void EngineRecorder::write_if_nothing_runs() {
  if (open_.empty()) pending_.write(builder_);
}

void EngineRecorder::close(std::uint64_t call) { std::erase(open_, call); }

void EngineRecorder::on_request(const EngineRequest& request) noexcept {
  const std::scoped_lock lock(mutex_);
  note([&] {
    const bool is_new_storage = request.kind == EngineRequest::Kind::kSource ||
                                request.kind == EngineRequest::Kind::kForeignSource;
    if (is_new_storage && notes_decisions_) {
      storages_.insert_or_assign(request.token, request.storage);
    }
    pending_.add({.request = request});
    if (request.kind == EngineRequest::Kind::kAbort) close(request.call);
  });
}

void EngineRecorder::on_begin(std::uint64_t call, std::span<const StorageId> reads,
                              std::span<const Write> writes, bool has_failed) noexcept {
  const std::scoped_lock lock(mutex_);
  note([&] {
    pending_.add({.kind = Kind::kBegin,
                  .request = {.has_failed = has_failed},
                  .owner = call,
                  .reads = {reads.begin(), reads.end()},
                  .writes = {writes.begin(), writes.end()}});
    if (!has_failed) open_.push_back(call);
  });
}

void EngineRecorder::on_end(std::uint64_t call, const CallResult& result,
                            std::span<const StorageId> made) noexcept {
  const std::scoped_lock lock(mutex_);
  note([&] {
    const bool is_known = std::find(open_.begin(), open_.end(), call) != open_.end();
    if (!is_known) return end_of_unknown(result, made);
    Facts facts = describe_(result);
    PendingRequest end{.kind = Kind::kEnd,
                       .owner = call,
                       .text = std::move(facts.op),
                       .module = std::move(facts.module),
                       .cost = result.cost,
                       .is_replayable = result.is_replayable,
                       .is_random = facts.is_random};
    for (std::size_t i = 0; i < made.size(); ++i) {
      const NewOutput& output = result.outputs[i];
      end.outputs.push_back({.storage = made[i],
                             .block = output.block,
                             .bytes = output.bytes,
                             .is_source = output.is_source});
      if (notes_decisions_) storages_.insert_or_assign(output.storage, made[i]);
    }
    if (notes_decisions_ && result.is_replayable) calls_.insert_or_assign(result.token, call);
    pending_.add(std::move(end));
    close(call);
  });
}

// It began before the recording did.
void EngineRecorder::end_of_unknown(const CallResult& result, std::span<const StorageId> made) {
  for (std::size_t i = 0; i < made.size(); ++i) {
    pending_.add({.request = {.kind = EngineRequest::Kind::kSource,
                              .block = result.outputs[i].block,
                              .storage = made[i],
                              .bytes = result.outputs[i].bytes}});
  }
}

void EngineRecorder::on_event(const EngineEvent& event) noexcept {
  const bool is_eviction = event.kind == EngineEvent::Kind::kEvicted;
  if (!is_eviction && event.kind != EngineEvent::Kind::kReplayed) return;
  const std::scoped_lock lock(mutex_);
  note([&] {
    PendingRequest it{.kind = is_eviction ? Kind::kEvicted : Kind::kAgain};
    if (is_eviction) {
      const auto found = storages_.find(event.token);
      if (found != storages_.end()) it.request.storage = found->second;
    } else {
      const auto found = calls_.find(event.token);
      if (found != calls_.end()) it.request.call = found->second;
    }
    pending_.add(std::move(it));
  });
}

}  // namespace coop::sim
