#pragma once

// The world that the engine drives: PyTorch, or the simulator, or a test. The engine decides what is
// dropped and when it is made again; the world has the contents.
//
// replay() and forget() are called without the engine's lock. What replay() needs is Engine::allocate, free
// and address; want of memory must reach the engine as OutOfMemory. forget() may release storages. The
// others are called under the lock: they must be quick, must not call the engine (its pool may be asked for
// addresses), and must not wait for another thread.

#include <span>

#include "core/base/bytes.hpp"
#include "core/lineage/graph.hpp"
#include "core/pool/pool.hpp"

namespace coop {

class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  // Runs a Call again. `inputs` are the blocks of what it read, in its order. An input that the Call
  // changes where it is comes in a block of its own, free to be changed; the output in question is
  // that same block. Every other output goes into a block from Engine::allocate. All must be filled in,
  // also those that nobody wants any more; the engine frees them. May throw: blocks that were allocated
  // and not yet handed over are then the world's to free.
  virtual void replay(Token call, std::span<const BlockId> inputs, std::span<BlockId> outputs) = 0;

  // Whether the storage's contents are still what its Call left there. Asked before they are dropped: if
  // somebody has written them unseen, they stay.
  [[nodiscard]] virtual bool is_as_made(Token /*storage*/) noexcept { return true; }
  // The storage's contents are in this block (again, or for the first time).
  virtual void attach(Token storage, BlockId block) noexcept = 0;
  // The storage has no memory until attach is called again.
  virtual void detach(Token storage) noexcept = 0;
  virtual void copy(BlockId from, BlockId to, Bytes bytes) = 0;
  // Copies a block's contents to another place; to the left the two may overlap. `storage` is
  // whose contents they are, or null if nobody can see them.
  virtual void relocate(const Token* storage, BlockId block, Bytes from, Bytes to, Bytes bytes) = 0;
  // The Call will not be run again.
  virtual void forget(Token call) noexcept = 0;
};

}  // namespace coop
