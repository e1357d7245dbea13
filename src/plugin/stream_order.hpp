#pragma once

// On a device with streams, an operator has been enqueued when it returns, and runs later. What one stream
// does is in order; between two it is not, unless somebody makes one wait for the other.
//
// Note [Streams]
//
// One stream is home: the first that asks for memory. There, memory that is free to the host may be used again at
// once, since whoever had it comes earlier in the same stream; and there the engine's own work happens:
// replays, copies, moves. That is the usual program, and costs nothing.
// For every other stream:
//   - It waits for home when it is given memory, and when the engine has done something since it last waited.
//   - Its blocks are marked. Home waits for it when such a block goes, moves, or is read by a replay. So does
//     whatever `record_stream` names.
// What the program itself must order (one stream reads what another has made), it orders as it does without
// us: no address changes hands without the above.
//
// Nobody waits for a stream that is being captured, nor makes it wait: that would become a part of the graph. Before a
// capture home waits for all the others, and while one goes on its stream gets no memory of ours.
//
// Any thread may call these; blocks go under the engine's lock.

#include <atomic>
#include <cstdint>
#include <memory>

#include <c10/core/Stream.h>

#include "core/pool/pool.hpp"

namespace coop::plugin {

// Of PyTorch's own that something is allocated in at this moment, in place of ours; a graph that is being captured
// has one.
inline std::atomic<std::uint32_t> private_pools = 0;

class StreamOrder : public PoolListener {
 public:
  StreamOrder() = default;
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;
  ~StreamOrder() override = default;

  // The calling thread's stream got this block.
  virtual void allocated(BlockId block) = 0;
  // The calling thread's stream may use what the engine has brought back by now.
  virtual void begin_operator() = 0;
  // Whether what the calling thread enqueues goes into a graph, and does not run now.
  [[nodiscard]] virtual bool is_capturing() const = 0;
  // Whether what the calling thread enqueues is home's.
  [[nodiscard]] virtual bool is_home() const = 0;
  // The calling thread's stream uses it.
  virtual void use(BlockId block) = 0;
  virtual void use_on(BlockId block, c10::Stream stream) = 0;

  // The calling thread enqueues on home while this lives; what it has enqueued is the engine's work.
  class AtHome {
   public:
    AtHome() = default;
    AtHome(const AtHome&) = delete;
    AtHome& operator=(const AtHome&) = delete;
    virtual ~AtHome() = default;
  };
  virtual std::unique_ptr<AtHome> at_home() = 0;
  // Home is about to read or write it.
  virtual void await(BlockId block) noexcept = 0;
  // A graph is about to be captured: what other streams have begun, home waits for now, since it cannot later.
  virtual void await_all() noexcept = 0;
};

}  // namespace coop::plugin
