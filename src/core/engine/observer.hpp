#pragma once

// Told of what the engine does, as it does it: for memory maps, traces and reports.

#include <cstdint>

#include "core/base/bytes.hpp"
#include "core/lineage/graph.hpp"
#include "core/pool/pool.hpp"

namespace coop {

struct EngineEvent {
  enum class Kind : std::uint8_t {
    kAllocated,    // a block was taken, for an output, a workspace, a copy
    kPlaced,       // the block has a Value's contents from now on
    kFreed,        // the block is gone
    kEvicted,      // the block's Value was dropped; kFreed follows
    kMoved,        // the block was at `from`
    kRecorded,     // a Call was run for the first time
    kReplayed,     // a Call was run again
    kCut,          // a Value became a Source
    kCopiedAside,  // the block has a copy of contents that are about to be overwritten
    kOutOfMemory,  // `bytes` could not be had
  };
  Kind kind = Kind::kAllocated;
  double now = 0;  // on the engine's clock
  BlockId block;
  Bytes offset = 0;
  Bytes bytes = 0;
  Bytes from = 0;
  // Of the storage that the block's Value is the contents of, or of the Call; 0: of neither.
  Token token = 0;
  bool is_source = false;
  double cost = 0;  // of the Call; to bring the Value back
};

// Called under the engine's lock: must be quick, and must not call the engine.
class EngineObserver {
 public:
  EngineObserver() = default;
  EngineObserver(const EngineObserver&) = delete;
  EngineObserver& operator=(const EngineObserver&) = delete;
  virtual ~EngineObserver() = default;

  virtual void on_event(const EngineEvent& event) noexcept = 0;
};

}  // namespace coop
