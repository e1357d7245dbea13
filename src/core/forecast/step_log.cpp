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
  add_event({StepRecord::Kind::kSource, storage});
  add_live(storage.bytes, 1);
}

void StepLog::lineage_ends(const StorageUse& storage) {
  add_event({StepRecord::Kind::kEndLineage, storage});
}

void StepLog::storage_goes(const StorageUse& storage) {
  add_event({StepRecord::Kind::kRelease, storage});
  add_live(storage.bytes, -1);
}

void StepLog::call_ends(LoggedCall call, std::span<const StorageUse> reads,
                        std::span<const StorageUse> writes, std::span<const StorageUse> makes,
                        std::span<const StepRecord::Piece> pieces) {
  reads_.insert(reads_.end(), reads.begin(), reads.end());
  writes_.insert(writes_.end(), writes.begin(), writes.end());
  makes_.insert(makes_.end(), makes.begin(), makes.end());
  pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
  call.reads_end = first_read_ + reads_.size();
  call.writes_end = first_write_ + writes_.size();
  call.makes_end = first_made_ + makes_.size();
  call.pieces_end = first_piece_ + pieces_.size();
  call.least_at = least_at_;
  call.least_bytes = least_;
  calls_.push_back(call);
  add_event({.kind = StepRecord::Kind::kCall});
  for (const StorageUse& made : makes) add_live(made.bytes, 1);
  least_ = std::numeric_limits<std::int64_t>::max();
  add_live(0, 1);
  while (calls_.size() > most_calls_) forget_oldest();
}

void StepLog::clear_places() {
  for (LoggedCall& call : calls_) call.place = LoggedCall::kNowhere;
}

void StepLog::add_event(const Event& event) { events_.push_back(event); }

void StepLog::add_live(Bytes bytes, int sign) {
  if (bytes > small_) live_ += sign * static_cast<std::int64_t>(bytes);
  // The latest of equals: what comes next belongs to what follows.
  if (live_ <= least_) {
    least_ = live_;
    least_at_ = first_event_ + events_.size();
  }
}

void StepLog::forget_oldest() {
  const LoggedCall& oldest = calls_.front();
  const auto drop = [](auto& list, std::uint64_t& first, std::uint64_t end) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(end - first));
    first = end;
  };
  drop(reads_, first_read_, oldest.reads_end);
  drop(writes_, first_write_, oldest.writes_end);
  drop(makes_, first_made_, oldest.makes_end);
  drop(pieces_, first_piece_, oldest.pieces_end);
  calls_.pop_front();
  ++first_call_;
  while (events_.front().kind != StepRecord::Kind::kCall) {
    events_.pop_front();
    ++first_event_;
  }
  events_.pop_front();
  ++first_event_;
}

StepRecord StepLog::record(std::uint64_t from, std::uint64_t until,
                           std::uint64_t first_call) const {
  COOP_CHECK(from >= first_event_ && until <= first_event_ + events_.size());
  RecordWriter writer;
  StepRecord& record = writer.record;
  std::uint64_t number = first_call;
  for (std::uint64_t i = from; i < until; ++i) {
    const Event& event = events_[i - first_event_];
    if (event.kind == StepRecord::Kind::kSource) {
      writer.add_event(event.kind, writer.add(event.storage, event.storage.is_source_forever));
    } else if (event.kind != StepRecord::Kind::kCall) {
      writer.add_event(event.kind, writer.number_of(event.storage));
    } else {
      const LoggedCall& logged = call(number);
      const bool is_first = number == first_call_;
      const LoggedCall* before = is_first ? nullptr : &call(number - 1);
      const auto each = [&](const auto& list, std::uint64_t first, std::uint64_t begin,
                            std::uint64_t end, const auto& fn) {
        for (std::uint64_t k = begin; k < end; ++k) fn(list[k - first]);
      };
      each(reads_, first_read_, before == nullptr ? first_read_ : before->reads_end,
           logged.reads_end,
           [&](const StorageUse& use) { record.reads.push_back(writer.number_of(use)); });
      each(writes_, first_write_, before == nullptr ? first_write_ : before->writes_end,
           logged.writes_end, [&](const StorageUse& use) {
             record.writes.push_back({writer.number_of(use), use.reads_old});
           });
      each(makes_, first_made_, before == nullptr ? first_made_ : before->makes_end,
           logged.makes_end, [&](const StorageUse& use) {
             // What `empty` made cannot be made again; what is written there later can be.
             const bool is_source =
                 use.is_source_forever || (use.is_source && logged.is_replayable);
             record.makes.push_back(writer.add(use, is_source));
           });
      each(pieces_, first_piece_, before == nullptr ? first_piece_ : before->pieces_end,
           logged.pieces_end,
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
