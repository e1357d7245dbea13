#include "sim/simulator/block_history.hpp"

#include <algorithm>

#include "core/pool/pool.hpp"

namespace coop::sim {

BlockHistory::BlockHistory(const Trace& trace)
    : small_limit_(trace.recorded_with() ? trace.recorded_with()->small_limit
                                         : PoolOptions{}.small_limit) {
  CallNumber next_call{0};
  for (const TraceEvent& event : trace.events()) {
    if (event.kind == EventKind::kCall || event.kind == EventKind::kFinish) {
      next_call = CallNumber{event.subject + 1};
    } else if (event.kind == EventKind::kStep) {
      marks_to_come_.push_back({.call = next_call, .mark = {.is_step = true}});
    } else if (event.kind == EventKind::kAnnotate) {
      marks_to_come_.push_back({.call = next_call, .mark = {.text = event.name()}});
    }
  }
}

void BlockHistory::on_event(const EngineEvent& event) noexcept {
  now_ = event.now;
  ++events_;
  switch (event.kind) {
    case EngineEvent::Kind::kAllocated:
      return begin(event);
    case EngineEvent::Kind::kPlaced:
      return place(event);
    case EngineEvent::Kind::kCut:
    case EngineEvent::Kind::kCopiedAside:
      return turn_into_source(event);
    case EngineEvent::Kind::kEvicted:
      return evict(event);
    case EngineEvent::Kind::kMoved:
      return move(event);
    case EngineEvent::Kind::kFreed:
      return end(event);
    case EngineEvent::Kind::kRecorded:
      return end_call(event, false);
    case EngineEvent::Kind::kReplayed:
      return end_call(event, true);
    case EngineEvent::Kind::kOutOfMemory:
      return;
  }
}

void BlockHistory::begin(const EngineEvent& event) {
  open_[event.block.index()] = {.span = {.begin_ns = now_,
                                         .offset = event.offset,
                                         .bytes = event.bytes,
                                         .begin_event = events_},
                                .calls_before = calls_};
  taken_for_call_.push_back(event.block.index());
  if (event.bytes <= small_limit_) return;
  for (const std::size_t span : evicted_for_call_) {
    if (spans_[span].evicted_for_bytes == 0) spans_[span].evicted_for_bytes = event.bytes;
  }
}

void BlockHistory::place(const EngineEvent& event) {
  OpenBlock& open = open_[event.block.index()];
  open.span.storage = event.token;
  // A version that is about to be written where it is counts as a Source until the operator is done, and
  // nobody is told what it is then. It is for what it was for before.
  if (open.is_placed && event.is_source) return;
  // An operator hands over what it has made when it has run, and a replay is an operator too. What is
  // placed without one in between is memory for what is about to be overwritten.
  const bool was_made_by_replay = was_replay_ && calls_ > open.calls_before;
  BlockUse use = was_made_by_replay ? BlockUse::kRecomputed : BlockUse::kActivation;
  if (event.is_source) use = BlockUse::kSource;
  if (open.is_placed && use != open.span.use) split(open);
  open.is_placed = true;
  open.span.use = use;
}

void BlockHistory::evict(const EngineEvent& event) {
  BlockSpan& span = open_[event.block.index()].span;
  span.ends_evicted = true;  // kFreed follows
  span.return_ns = event.cost;
  // It came from outside, was overwritten, and could be made again from then on.
  if (span.use == BlockUse::kSource) span.use = BlockUse::kActivation;
}

void BlockHistory::turn_into_source(const EngineEvent& event) {
  OpenBlock& open = open_[event.block.index()];
  if (open.is_placed && open.span.use != BlockUse::kSource) split(open);
  open.is_placed = true;
  open.span.use = BlockUse::kSource;
}

void BlockHistory::move(const EngineEvent& event) {
  OpenBlock& open = open_[event.block.index()];
  split(open);
  open.span.offset = event.offset;
}

void BlockHistory::end(const EngineEvent& event) {
  const auto found = open_.find(event.block.index());
  OpenBlock& open = found->second;
  open.span.end_ns = now_;
  open.span.end_event = events_;
  const bool is_in_call = !open.is_placed && calls_ == open.calls_before;
  if (is_in_call) {
    ending_with_call_.push_back(open.span);
  } else {
    // What a replay makes and nobody wants is not placed.
    if (!open.is_placed) open.span.use = BlockUse::kRecomputed;
    if (open.span.ends_evicted) evicted_for_call_.push_back(spans_.size());
    spans_.push_back(open.span);
  }
  open_.erase(found);
}

void BlockHistory::end_call(const EngineEvent& event, bool is_replay) {
  ++calls_;
  was_replay_ = is_replay;
  for (const std::uint32_t index : taken_for_call_) {
    const auto found = open_.find(index);
    if (found != open_.end() && found->second.span.call == 0) found->second.span.call = event.token;
  }
  taken_for_call_.clear();
  for (const std::size_t span : evicted_for_call_) spans_[span].evicted_for = event.token;
  evicted_for_call_.clear();
  for (BlockSpan& span : ending_with_call_) {
    span.end_ns = now_;
    span.call = event.token;
    spans_.push_back(span);
  }
  ending_with_call_.clear();
  if (is_replay) return;
  const CallNumber call{static_cast<std::uint32_t>(event.token - 1)};
  const auto by_call = [](const MarkBeforeCall& mark, CallNumber number) {
    return mark.call < number;
  };
  auto next = std::lower_bound(marks_to_come_.begin(), marks_to_come_.end(), call, by_call);
  for (; next != marks_to_come_.end() && next->call == call; ++next) {
    marks_.push_back(next->mark);
    marks_.back().ns = now_ - event.cost;
  }
}

void BlockHistory::split(OpenBlock& open) {
  BlockSpan before = open.span;
  before.end_ns = now_;
  before.end_event = events_;
  spans_.push_back(before);
  open.span.begin_ns = now_;
  open.span.begin_event = events_;
}

void BlockHistory::finish() {
  for (auto& [index, open] : open_) {
    open.span.end_ns = now_;
    open.span.end_event = events_ + 1;
    spans_.push_back(open.span);
  }
  open_.clear();
  // A table of hashes has no order of its own; the same run must give the same map.
  std::stable_sort(spans_.begin(), spans_.end(), [](const BlockSpan& a, const BlockSpan& b) {
    return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.offset < b.offset;
  });
}

}  // namespace coop::sim
