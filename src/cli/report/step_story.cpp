#include "cli/report/step_story.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "sim/simulator/demand.hpp"

namespace coop::cli {

using sim::BlockSpan;
using sim::BlockUse;

const char* describe(Filling filling) {
  switch (filling) {
    case Filling::kParameter:
      return "parameters and buffers";
    case Filling::kGradient:
      return "gradients";
    case Filling::kState:
      return "optimizer state";
    case Filling::kFromOutside:
      return "from before the step, or from outside";
    case Filling::kLasting:
      return "made in the step, must stay";
    case Filling::kComputed:
      return "activations, which can be recomputed";
    case Filling::kAgain:
      return "recomputed";
    case Filling::kWorkspace:
      return "workspace of operators";
  }
  return "";
}

StepStory::StepStory(const sim::Trace& trace)
    : trace_(trace), history_(trace), makers_(trace.storages().size()) {
  for (std::uint32_t i = 0; i < trace.call_count(); ++i) {
    const sim::TraceCall call = trace.call(sim::CallNumber{i});
    for (std::uint32_t k = 0; k < call.outputs; ++k) {
      makers_[sim::index_of(call.output(k))] = Token{i} + 1;
    }
  }
}

void StepStory::on_event(const EngineEvent& event) noexcept {
  history_.on_event(event);
  const bool is_again = event.kind == EngineEvent::Kind::kReplayed;
  if (!is_again && event.kind != EngineEvent::Kind::kRecorded) return;
  ran_.push_back({.ns = event.now,
                  .cost_ns = event.cost,
                  .call = event.token,
                  .event = history_.event_count(),
                  .is_again = is_again});
}

void StepStory::finish() {
  history_.finish();
  begin_ns_ = find_beginning();
  length_ns_ = history_.end_ns() - begin_ns_;
  add_blocks();
  add_moments();
  add_repetitions();
  for (sim::TimeMark mark : history_.marks()) {
    mark.ns -= begin_ns_;
    if (!mark.is_step && mark.ns >= 0) remarks_.push_back(mark);
  }
}

// --- who is who ---

Place StepStory::place_of(Token call) const {
  if (call == 0) return {};
  const sim::TraceCall about = trace_.call(sim::CallNumber{static_cast<std::uint32_t>(call - 1)});
  return {.op = about.op, .module = about.module};
}

Place StepStory::maker_of(Token storage) const {
  return storage == 0 ? Place{} : place_of(makers_[storage - 1]);
}

sim::NameNumber StepStory::name_of(Token storage) const {
  return storage == 0 ? sim::kNoName : trace_.storages()[storage - 1].name;
}

bool StepStory::has_modules() const {
  for (std::uint32_t i = 0; i < trace_.call_count(); ++i) {
    if (trace_.call(sim::CallNumber{i}).module != sim::kNoName) return true;
  }
  return false;
}

bool StepStory::has_names() const {
  const auto& all = trace_.storages();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& storage) { return storage.name != sim::kNoName; });
}

// Where the last step is marked to begin; without marks, where the trace was last begun.
double StepStory::find_beginning() const {
  double begin = 0;
  if (trace_.has_step_marks()) {
    for (const sim::TimeMark& mark : history_.marks()) {
      if (mark.is_step) begin = mark.ns;
    }
    return begin;
  }
  Token last = 0;
  double last_ns = 0;
  for (const Ran& ran : ran_) {
    if (ran.is_again || ran.call == 0) continue;
    if (ran.call <= last) begin = last_ns;
    last = ran.call;
    last_ns = ran.ns;
  }
  return begin;
}

Filling StepStory::filling_of(const BlockSpan& span) const {
  if (span.use == BlockUse::kRecomputed) return Filling::kAgain;
  if (span.use == BlockUse::kWorkspace) return Filling::kWorkspace;
  const std::string_view name = trace_.name(name_of(span.storage));
  if (name.starts_with("parameter ") || name.starts_with("buffer ")) return Filling::kParameter;
  if (name.starts_with("gradient ")) return Filling::kGradient;
  if (name.starts_with("state ")) return Filling::kState;
  if (span.use == BlockUse::kActivation) return Filling::kComputed;
  const bool was_made = span.storage != 0 && trace_.storages()[span.storage - 1].is_output;
  return was_made && span.begin_ns >= begin_ns_ ? Filling::kLasting : Filling::kFromOutside;
}

// --- what happened ---

void StepStory::add_blocks() {
  std::unordered_map<Token, std::uint32_t> times_again;
  for (const BlockSpan& span : history_.spans()) {
    const bool is_again = span.use == BlockUse::kRecomputed && span.begin_ns >= begin_ns_;
    if (is_again && span.storage != 0) ++times_again[span.storage];
  }
  for (const BlockSpan& span : history_.spans()) {
    if (span.end_ns <= begin_ns_) continue;
    const bool is_from_outside =
        span.storage != 0 && !trace_.storages()[span.storage - 1].is_output;
    const auto again = times_again.find(span.storage);
    blocks_.push_back({.begin_ns = std::max(span.begin_ns - begin_ns_, 0.0),
                       .end_ns = span.end_ns - begin_ns_,
                       .begin_event = span.begin_event,
                       .end_event = span.end_event,
                       .offset = span.offset,
                       .bytes = span.bytes,
                       .filling = filling_of(span),
                       .storage = span.storage,
                       .made_by = is_from_outside ? Place{} : place_of(span.call),
                       .name = name_of(span.storage),
                       .times_again = again == times_again.end() ? 0 : again->second,
                       .is_evicted = span.ends_evicted,
                       .evicted_for = place_of(span.evicted_for),
                       .evicted_for_bytes = span.evicted_for_bytes,
                       .return_ns = span.return_ns});
  }
}

// From one operator's end to the next one's, what counts is when most was held in between.
void StepStory::add_moments() {
  if (!(length_ns_ > 0)) return;
  moments_.resize(kMoments);
  struct Change {
    std::uint64_t event = 0;
    bool is_more = false;
    const StoryBlock* block = nullptr;
  };
  std::vector<Change> changes;
  changes.reserve(2 * blocks_.size());
  for (const StoryBlock& block : blocks_) {
    changes.push_back({.event = block.begin_event, .is_more = true, .block = &block});
    changes.push_back({.event = block.end_event, .is_more = false, .block = &block});
  }
  // A block that changes what it is for ends and begins at once.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.event != b.event ? a.event < b.event : !a.is_more && b.is_more;
  });
  const std::vector<Bytes> needed = sim::measure_demand_by_call(trace_);
  Moment now;
  auto next = changes.begin();
  double begin = 0;
  Bytes last_needed = 0;
  for (const Ran& ran : ran_) {
    Moment most = now;
    while (next != changes.end() && next->event <= ran.event) {
      const std::uint64_t event = next->event;
      for (; next != changes.end() && next->event == event; ++next) {
        const Bytes bytes = next->block->bytes;
        const Bytes more = next->is_more ? bytes : Bytes{0} - bytes;
        now.held[static_cast<std::size_t>(next->block->filling)] += more;
        now.all_held += more;
      }
      now.event = event;
      if (now.all_held > most.all_held) most = now;
    }
    if (!ran.is_again && ran.call != 0) last_needed = needed[ran.call - 1];
    most.needed = last_needed;
    const double end = ran.ns - begin_ns_;
    if (end > 0) add_moment(most, begin, end);
    begin = std::max(end, 0.0);
  }
}

void StepStory::add_moment(Moment now, double begin, double end) {
  const auto stretch_of = [&](double ns) {
    const double part = std::clamp(ns / length_ns_, 0.0, 1.0);
    return std::min(static_cast<std::size_t>(part * kMoments), kMoments - 1);
  };
  now.ns = begin;
  if (now.all_held > fullest_.all_held) fullest_ = now;
  for (std::size_t i = stretch_of(begin); i <= stretch_of(end); ++i) {
    const Bytes needed = std::max(moments_[i].needed, now.needed);
    if (now.all_held > moments_[i].all_held) moments_[i] = now;
    moments_[i].needed = needed;
  }
}

void StepStory::add_repetitions() {
  std::map<Place, Repetition> by_place;
  for (const Ran& ran : ran_) {
    if (!ran.is_again || ran.ns <= begin_ns_) continue;
    const Place place = place_of(ran.call);
    Repetition& it = by_place[place];
    it.place = place;
    ++it.times;
    it.ns += ran.cost_ns;
  }
  for (const auto& [place, it] : by_place) repetitions_.push_back(it);
  std::stable_sort(repetitions_.begin(), repetitions_.end(),
                   [](const Repetition& a, const Repetition& b) { return a.ns > b.ns; });
}

Place StepStory::running_at(const Moment& moment) const {
  const auto found =
      std::lower_bound(ran_.begin(), ran_.end(), moment.event,
                       [](const Ran& ran, std::uint64_t event) { return ran.event < event; });
  return found == ran_.end() ? Place{} : place_of(found->call);
}

std::vector<const StoryBlock*> StepStory::blocks_at(const Moment& moment) const {
  std::vector<const StoryBlock*> found;
  for (const StoryBlock& block : blocks_) {
    if (block.begin_event <= moment.event && moment.event < block.end_event) {
      found.push_back(&block);
    }
  }
  return found;
}

}  // namespace coop::cli
