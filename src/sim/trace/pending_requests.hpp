#pragma once

// What the engine was asked for since an operator began, until all that have begun are over. Then it is
// written down, and an operator during which nothing but its own memory came and went is one line of the trace.

#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "sim/trace/trace_builder.hpp"

namespace coop::sim {

struct PendingRequest {
  enum class Kind : std::uint8_t {
    kRequest,
    kBegin,
    kEnd,
    kStep,
    kAnnotate,
    kName,
    kEvicted,
    kAgain
  };
  struct Output {
    StorageId storage;
    BlockId block;
    Bytes bytes = 0;
    bool is_source = false;
  };

  Kind kind = Kind::kRequest;
  EngineRequest request;  // of kRequest; of the others what they have of it
  // The call that memory is for; of a begin and an end: itself.
  std::uint64_t owner = 0;
  std::thread::id thread = std::this_thread::get_id();
  std::vector<StorageId> reads{};
  std::vector<Write> writes{};
  std::vector<Output> outputs{};
  std::string text{};  // a remark, an operator, or a storage's name
  std::string module{};
  double cost = 0;
  bool is_replayable = false;
  bool is_random = false;
};

class PendingRequests {
 public:
  void add(PendingRequest request) { requests_.push_back(std::move(request)); }
  // Puts them into the trace, in order. Throws TraceError, and bad_alloc.
  void write(TraceBuilder& builder);

 private:
  void find_owners();
  [[nodiscard]] std::size_t end_of(std::size_t begin) const;
  [[nodiscard]] bool is_in_one_piece(std::size_t begin, std::size_t end) const;
  [[nodiscard]] std::vector<MemoryStep> memory_between(std::size_t begin, std::size_t end) const;
  void write(const PendingRequest& it, TraceBuilder& builder);
  void write_call(std::size_t begin, std::size_t end, TraceBuilder& builder);
  void write_begin(std::size_t begin, TraceBuilder& builder);
  void write_finish(std::size_t end, TraceBuilder& builder);
  void write_request(const EngineRequest& it, TraceBuilder& builder);
  void note_end(const PendingRequest& end, StorageNumber first);
  [[nodiscard]] std::vector<StorageNumber> numbers_of(std::span<const StorageId> storages) const;
  [[nodiscard]] std::vector<TraceWrite> numbers_of(std::span<const Write> writes) const;

  std::vector<PendingRequest> requests_;
  std::unordered_map<StorageId, StorageNumber> storages_;
  std::unordered_map<BlockId, BlockNumber> blocks_;
  struct Run {
    RunNumber number{};
    std::size_t begin = 0;  // in `requests_`
  };
  std::unordered_map<std::uint64_t, Run> runs_;          // by RunningCall::number
  std::unordered_map<std::uint64_t, CallNumber> calls_;  // that may be run again
  std::uint32_t calls_written_ = 0;
};

}  // namespace coop::sim
