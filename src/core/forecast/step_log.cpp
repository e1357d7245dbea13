#include "core/forecast/step_log.hpp"

#include <limits>
#include <unordered_map>

#include "core/base/check.hpp"

namespace coop {
namespace {

// Turns a stretch of the log into a record, in which storages have small numbers.
class RecordWriter {
 public:
  StepRecord record;

  std::uint32_t number_of(const StorageUse& use) {
    const auto [found, is_new] = numbers_.try_emplace(use.storage, next_number());
    // Nobody has seen it come: it was there before.
    if (is_new) record.storages.push_back({use.bytes, /*is_there=*/true, /*is_source=*/true});
    return found->second;
  }
  std::uint32_t add(const StorageUse& use, bool is_source) {
    const std::uint32_t number = next_number();
    numbers_[use.storage] = number;
    record.storages.push_back({use.bytes, /*is_there=*/false, is_source});
    return number;
  }
  void add_event(StepRecord::Kind kind, std::size_t subject) {
    record.events.push_back({kind, static_cast<std::uint32_t>(subject)});
  }

 private:
  [[nodiscard]] std::uint32_t next_number() const {
    return static_cast<std::uint32_t>(record.storages.size());
  }
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

}  // namespace

void StepLog::source_comes(const StorageUse& storage) {
  events_.push({StepRecord::Kind::kSource, storage});
  add_live(storage.bytes, 1);
}

void StepLog::lineage_ends(const StorageUse& storage) {
  events_.push({StepRecord::Kind::kEndLineage, storage});
}

void StepLog::storage_goes(const StorageUse& storage) {
  events_.push({StepRecord::Kind::kRelease, storage});
  add_live(storage.bytes, -1);
}

void StepLog::call_ends(LoggedCall call, std::span<const StorageUse> reads,
                        std::span<const StorageUse> writes, std::span<const StorageUse> makes,
                        std::span<const StepRecord::Piece> pieces) {
  keep_latest(most_calls_ - 1);
  reads_.append(reads);
  writes_.append(writes);
  makes_.append(makes);
  pieces_.append(pieces);
  call.reads_end = reads_.end();
  call.writes_end = writes_.end();
  call.makes_end = makes_.end();
  call.pieces_end = pieces_.end();
  call.least_at = least_at_;
  call.least_bytes = least_;
  calls_.push(call);
  events_.push({.kind = StepRecord::Kind::kCall});
  for (const StorageUse& made : makes) add_live(made.bytes, 1);
  least_ = std::numeric_limits<std::int64_t>::max();
  add_live(0, 1);
}

void StepLog::keep_latest(std::size_t calls) {
  while (calls_.size() > calls) forget_oldest();
}

void StepLog::clear_places() {
  for (std::uint64_t i = calls_.first(); i < calls_.end(); ++i) set_place(i, LoggedCall::kNowhere);
}

void StepLog::add_live(Bytes bytes, int sign) {
  if (bytes > small_) live_ += sign * static_cast<std::int64_t>(bytes);
  // The latest of equals: what comes next belongs to what follows.
  if (live_ <= least_) {
    least_ = live_;
    least_at_ = events_.end();
  }
}

void StepLog::forget_oldest() {
  const LoggedCall& oldest = calls_[calls_.first()];
  reads_.forget_until(oldest.reads_end);
  writes_.forget_until(oldest.writes_end);
  makes_.forget_until(oldest.makes_end);
  pieces_.forget_until(oldest.pieces_end);
  calls_.forget_until(calls_.first() + 1);
  std::uint64_t event = events_.first();
  while (events_[event].kind != StepRecord::Kind::kCall) ++event;
  events_.forget_until(event + 1);
}

StepRecord StepLog::record(std::uint64_t from, std::uint64_t until,
                           std::uint64_t first_call) const {
  COOP_CHECK(from >= events_.first() && until <= events_.end());
  RecordWriter writer;
  StepRecord& record = writer.record;
  std::uint64_t number = first_call;
  for (std::uint64_t i = from; i < until; ++i) {
    const Event& event = events_[i];
    if (event.kind == StepRecord::Kind::kSource) {
      writer.add_event(event.kind, writer.add(event.storage, event.storage.is_source_forever));
    } else if (event.kind != StepRecord::Kind::kCall) {
      writer.add_event(event.kind, writer.number_of(event.storage));
    } else {
      const LoggedCall& logged = call(number);
      const LoggedCall* before = has_call(number - 1) ? &call(number - 1) : nullptr;
      const auto each = [&](const auto& list, std::uint64_t LoggedCall::*end, const auto& fn) {
        const std::uint64_t begin = before == nullptr ? list.first() : before->*end;
        for (std::uint64_t k = begin; k < logged.*end; ++k) fn(list[k]);
      };
      each(reads_, &LoggedCall::reads_end,
           [&](const StorageUse& use) { record.reads.push_back(writer.number_of(use)); });
      each(writes_, &LoggedCall::writes_end, [&](const StorageUse& use) {
        record.writes.push_back({writer.number_of(use), use.reads_old});
      });
      each(makes_, &LoggedCall::makes_end, [&](const StorageUse& use) {
        // What `empty` made cannot be made again; what is written there later can be.
        const bool is_source = use.is_source_forever || (use.is_source && logged.is_replayable);
        record.makes.push_back(writer.add(use, is_source));
      });
      each(pieces_, &LoggedCall::pieces_end,
           [&](const StepRecord::Piece& piece) { record.pieces.push_back(piece); });
      writer.add_event(event.kind, record.calls.size());
      record.calls.push_back({.cost = logged.cost,
                              .workspace = logged.workspace,
                              .is_replayable = logged.is_replayable,
                              .reads_end = static_cast<std::uint32_t>(record.reads.size()),
                              .writes_end = static_cast<std::uint32_t>(record.writes.size()),
                              .makes_end = static_cast<std::uint32_t>(record.makes.size()),
                              .pieces_end = static_cast<std::uint32_t>(record.pieces.size())});
      ++number;
    }
  }
  return std::move(writer.record);
}

}  // namespace coop
