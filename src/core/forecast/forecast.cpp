#include "core/forecast/forecast.hpp"

#include <algorithm>

#include "core/base/hash.hpp"

namespace coop {
namespace {

// A plan whose places others have is made anew, but not for ever.
constexpr int kMostReplans = 4;
constexpr std::uint32_t kMostFailures = 16;
constexpr std::uint32_t kMostLeaves = 4;
// What is asked of the log while a plan is followed is where the program was when it did this last; or, if the plan is of
// a loop within a step, what else the step had. A long log is a ring that is out of the processor's caches by the time
// that it comes round.
constexpr std::size_t kRoundsKept = 3;
constexpr std::size_t kLeastKept = 8192;  // calls
// Of what a step costs without a plan: one that costs more than this is dropped. A plan makes no searches, and leaves no
// holes; and costs are measured, and differ a little from step to step.
constexpr double kDearer = 1.05;

}  // namespace

Forecast::Forecast(const ForecastOptions& options)
    : options_(options), log_(options.small_limit, options.most_calls, options.calls_before) {}

// --- learning ---

template <typename Function>
void Forecast::unless_failed(Function&& fn) noexcept {
  if (has_failed_) return;
  try {
    fn();
  } catch (...) {
    stop();
  }
}

void Forecast::source_comes(const StorageUse& storage) noexcept {
  unless_failed([&] { log_.source_comes(storage); });
}

void Forecast::lineage_ends(const StorageUse& storage) noexcept {
  unless_failed([&] { log_.lineage_ends(storage); });
}

void Forecast::storage_goes(const StorageUse& storage) noexcept {
  unless_failed([&] { log_.storage_goes(storage); });
}

std::uint64_t Forecast::hash_of(std::span<const StorageUse> reads,
                                std::span<const StorageUse> writes) const {
  const auto mix_in = [&](std::uint64_t hash, const StorageUse& use) {
    return mixed(mixed(hash, use.bytes), use.written_at > 0 ? next_call() - use.written_at : 0);
  };
  std::uint64_t hash = reads.size();
  for (const StorageUse& use : reads) hash = mix_in(hash, use);
  for (const StorageUse& use : writes) hash = mixed(mix_in(hash, use), use.reads_old ? 1 : 2);
  return hash;
}

void Forecast::call_begins(std::span<const StorageUse> reads,
                           std::span<const StorageUse> writes) noexcept {
  places_ = {};
  is_expected_ = is_following_ && expected_[now_].begins == hash_of(reads, writes);
  if (is_expected_ && now_ == 0) as_planned_ = elsewhere_ = 0;
}

std::optional<std::uint32_t> Forecast::call_ends(const EndedCall& call) noexcept {
  if (has_failed_) return std::nullopt;
  LoggedCall logged{.cost = call.cost,
                    .workspace = call.workspace,
                    .is_replayable = call.is_replayable,
                    .recomputed = call.recomputed,
                    .begin_hash = hash_of(call.reads, call.writes)};
  logged.hash = logged.begin_hash;
  recomputed_ = call.recomputed;
  for (const StorageUse& made : call.makes) logged.hash = mixed(logged.hash, made.bytes);
  if (is_following_ && expected_[now_].ends != logged.hash) leave();
  if (is_following_) logged.place = now_;
  try {
    const std::uint64_t mark = mark_of(call, logged.hash);
    if (is_following_) log_.keep_latest(std::max(kLeastKept, kRoundsKept * expected_.size()));
    log_.call_ends(logged, call.reads, call.writes, call.makes, call.pieces);
    repetition_.add(log_.calls(), mark);
  } catch (...) {
    stop();
    return std::nullopt;
  }
  return is_following_ ? std::optional(now_) : std::nullopt;
}

std::uint64_t Forecast::mark_of(const EndedCall& call, std::uint64_t hash) const {
  std::uint64_t mark = mixed(hash, static_cast<std::uint64_t>(log_.live_bytes()));
  for (const auto& uses : {call.reads, call.writes}) {
    for (const StorageUse& use : uses) {
      const bool was_always_there = use.is_from_outside && use.storage <= options_.storages_before;
      if (was_always_there) mark = mixed(mark, use.storage);
    }
  }
  return mark;
}

void Forecast::call_is_over() noexcept {
  if (is_following_) {
    if (++now_ == expected_.size()) begin_round();
  } else {
    find_place_again();
    look_for_step();
  }
  allocations_by(kArrives);
}

// --- steps ---

// A step begins where the least is alive.
void Forecast::look_for_step() {
  const std::uint64_t period = repetition_.period();
  const std::uint64_t last = log_.calls();
  if (period == 0 || is_following_ || !log_.has_call(last - period)) return;
  // What was left for once is found again (an operator more, every so many steps, that writes a log). What is left in
  // every step, if only at its end, is another program's.
  const bool may_be_found = plan_ && leaves_ < kMostLeaves && last < left_at_ + period;
  if (may_be_found) return;
  if (period != period_) failures_ /= 2;
  const bool is_waiting = expected_at_ > last || last < not_before_;
  if (period == period_ && is_waiting) return;
  std::uint64_t least = last;
  for (std::uint64_t i = last; i > last - period; --i) {
    if (log_.call(i).least_bytes <= log_.call(least).least_bytes) least = i;
  }
  period_ = period;
  expected_at_ = least + period;
}

bool Forecast::wants_plan() const {
  if (is_following_) {
    return now_ == 0 && replans_left_ > 0 && elsewhere_ * 20 > as_planned_ + elsewhere_;
  }
  if (expected_at_ != next_call() || repetition_.period() != period_) return false;
  return recomputed_ > log_.call(expected_at_ - period_).recomputed;  // there is something to gain
}

void Forecast::make_plan(std::span<const ByteRange> held) noexcept {
  try {
    const bool was_left = plan_ && !is_following_;
    if (!is_following_) write_step_down(held);
    is_following_ = false;
    leaves_ = 0;
    places_ = {};  // of the plan that was
    plan_ = plan_step(step_, {.budget = options_.budget,
                              .small_limit = options_.small_limit,
                              .held = {held.begin(), held.end()},
                              .most_depth = options_.most_depth});
    --replans_left_;
    if (plan_ && plan_->overhead_ns < unplanned_) {
      if (was_left) put_off();  // the next, if this one is left as well
      follow(0);
    } else {
      drop_plan();
    }
  } catch (...) {
    stop();
  }
}

void Forecast::write_step_down(std::span<const ByteRange> held) {
  const std::uint64_t first = expected_at_ - period_;
  expected_at_ = 0;
  step_ = log_.record(log_.call(first).least_at, log_.least_at(), first);
  expected_.clear();
  bool has_followed_one = false;
  for (std::uint64_t i = first; i < first + period_; ++i) {
    has_followed_one = has_followed_one || log_.call(i).place != LoggedCall::kNowhere;
  }
  log_.clear_places();
  for (std::uint64_t i = first; i < first + period_; ++i) {
    expected_.push_back({.begins = log_.call(i).begin_hash, .ends = log_.call(i).hash});
    log_.set_place(i, static_cast<std::uint32_t>(i - first));
  }
  // And what it never touches.
  Bytes known = 0;
  for (const StepRecord::Storage& storage : step_.storages) {
    if (storage.is_there) known += storage.bytes;
  }
  Bytes all = 0;
  for (const ByteRange& range : held) all += range.end - range.begin;
  if (all > known) step_.storages.push_back({all - known, true, true});
  replans_left_ = kMostReplans;
  // A step that followed a plan, if only here and there, does not show what one costs without.
  const double paid =
      recomputed_ - (log_.has_call(first - 1) ? log_.call(first - 1).recomputed : 0);
  unplanned_ = has_followed_one ? std::max(unplanned_, paid) : paid;
}

void Forecast::drop_plan() noexcept {
  is_following_ = false;
  places_ = {};
  plan_.reset();
  put_off();
}

// The next plan is made later, and ever more seldom.
void Forecast::put_off() noexcept {
  failures_ = std::min(failures_ + 1, kMostFailures);
  not_before_ = log_.calls() + (std::uint64_t{expected_.size()} << failures_);
}

// --- following ---

void Forecast::leave() noexcept {
  is_following_ = false;
  left_at_ = log_.calls();
  ++leaves_;
}

// What the program does now it did at a place in the plan, or at one that was found to be.
void Forecast::find_place_again() {
  const auto earlier = repetition_.earlier();
  if (!plan_ || !earlier || !log_.has_call(*earlier)) return;
  const std::uint32_t place = log_.call(*earlier).place;
  if (place == LoggedCall::kNowhere) return;
  log_.set_place(log_.calls(), place);
  follow(place + 1 == expected_.size() ? 0 : place + 1);
}

void Forecast::follow(std::uint32_t from) noexcept {
  is_following_ = true;
  is_expected_ = false;  // until a Call has begun
  now_ = from;
  ++round_;
  is_whole_round_ = from == 0;
  round_began_at_ = recomputed_;
  as_planned_ = elsewhere_ = 0;
}

// The plan was followed to its end, and begins anew.
void Forecast::begin_round() noexcept {
  const double paid = recomputed_ - round_began_at_;
  if (is_whole_round_ && paid > kDearer * unplanned_) return drop_plan();
  if (is_whole_round_) failures_ = leaves_ = 0;
  now_ = 0;
  ++round_;
  is_whole_round_ = true;
  round_began_at_ = recomputed_;
}

void Forecast::stop() noexcept {
  has_failed_ = true;
  is_following_ = false;
  places_ = {};
  expected_at_ = 0;
}

// --- places ---

void Forecast::allocations_by(std::uint32_t call) noexcept {
  places_ = {};
  if (!is_following_) return;
  places_ = plan_->places(now_, call);
  try {
    are_taken_.assign(places_.size(), false);
  } catch (...) {
    stop();
  }
}

void Forecast::resume_places() noexcept {
  if (is_expected_) allocations_by(now_);
}

// In the order in which they were allocated, those of this size.
std::optional<Bytes> Forecast::place_for(Bytes bytes) noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (are_taken_[i] || places_[i].bytes != bytes) continue;
    are_taken_[i] = true;
    return places_[i].offset;
  }
  return std::nullopt;
}

void Forecast::note_placed(bool is_as_planned) noexcept {
  ++(is_as_planned ? as_planned_ : elsewhere_);
}

}  // namespace coop
