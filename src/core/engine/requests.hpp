#pragma once

// Told of what the world asks of the engine, in the order in which it is done: for traces.
//
// All that an engine does follows from this, from its pool and from its policy. Whoever asks the same things of
// another engine with the same pool and policy gets the same evictions.

#include <cstdint>
#include <span>

#include "core/base/bytes.hpp"
#include "core/lineage/graph.hpp"
#include "core/pool/pool.hpp"

namespace coop {

struct CallResult;
struct Write;

struct EngineRequest {
  enum class Kind : std::uint8_t {
    kAllocate,       // block, bytes, cost, lives_long
    kFree,           // block
    kSource,         // storage, token, bytes, block
    kForeignSource,  // storage, token, bytes
    kMakeRoom,       // call, bytes
    kAbort,          // call
    // storage:
    kRelease,
    kEndLineage,
    kKeepInPlace,
    kExport,
    kMakeResident,
    // nothing:
    kEvictAll,
    kCompact,
  };
  Kind kind = Kind::kAllocate;
  bool has_failed = false;  // it threw; there is no block, no storage
  BlockId block;
  StorageId storage;
  Token token = 0;
  Bytes bytes = 0;
  double cost = 0;
  bool lives_long = false;
  std::uint64_t call = 0;  // RunningCall::number
};

// Called under the engine's lock by the thread that asks, when it has been done: must be quick, and must not
// call the engine. What the world allocates inside World::replay is not told: it follows from the Call. What it
// frees is, since that may be something else.
class RequestObserver {
 public:
  RequestObserver() = default;
  RequestObserver(const RequestObserver&) = delete;
  RequestObserver& operator=(const RequestObserver&) = delete;
  virtual ~RequestObserver() = default;

  virtual void on_request(const EngineRequest& request) noexcept = 0;
  virtual void on_begin(std::uint64_t call, std::span<const StorageId> reads,
                        std::span<const Write> writes, bool has_failed) noexcept = 0;
  virtual void on_end(std::uint64_t call, const CallResult& result,
                      std::span<const StorageId> made) noexcept = 0;
};

}  // namespace coop
