#pragma once

// What PyTorch's memory snapshots (torch.cuda.memory._snapshot, and what draws them) show of a pool.
//
//     a pool                 a segment
//     a block                a block of it, with the stack of whoever asked for it
//     taken, given back      alloc; free_requested and free_completed, which are one moment here
//     evicted                given back; when it is made again it is taken again
//     moved                  given back there, taken here
//
// Stacks and events are there only while PyTorch records history. A stack is taken before the engine is called:
// it takes Python's lock, for which nobody may wait with the engine's in his hands.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <c10/core/CachingDeviceAllocator.h>

#include "core/engine/engine.hpp"
#include "core/engine/observer.hpp"

namespace coop::plugin {

// Of a device. What is in it outlives the pools that it is about.
class MemoryHistory {
 public:
  using Entry = c10::CachingDeviceAllocator::TraceEntry;
  using Stacks = c10::CachingDeviceAllocator::RecordContext;
  using Stack = std::shared_ptr<c10::GatheredContext>;

  struct Settings {
    c10::CachingDeviceAllocator::CreateContextFn take_stack = nullptr;
    Stacks stacks = Stacks::NEVER;  // which are kept
    std::size_t most_entries = 0;   // the latest
    std::vector<Entry::Action> skipped;
  };

  void begin(const Settings& settings);
  void end();
  void forget();
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  // Of the calling thread; null if nobody wants it.
  [[nodiscard]] Stack take_stack() const;
  void note(Entry::Action action, c10::DeviceIndex device, std::size_t address, Bytes bytes,
            Stack stack = nullptr) noexcept;
  // In the order in which they happened; times are in microseconds, as PyTorch's own are in a snapshot.
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> is_on_ = false;
  Settings settings_;
  std::deque<Entry> entries_;
};

// Of one pool, and what becomes of its blocks.
class PoolHistory final : private EngineObserver {
 public:
  PoolHistory(MemoryHistory& history, c10::DeviceIndex device, const std::byte* pool,
              Engine& engine)
      : history_(history),
        device_(device),
        address_(reinterpret_cast<std::size_t>(pool)),
        engine_(engine) {}
  PoolHistory(const PoolHistory&) = delete;
  PoolHistory& operator=(const PoolHistory&) = delete;
  // The pool goes.
  ~PoolHistory() override;

  // From now on, if history is recorded. A new pool has come about just now.
  void follow(bool is_new = false);

  // The stack of the calling thread is that of what it asks the engine for while this lives.
  class Asking {
   public:
    explicit Asking(const MemoryHistory& history);
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    ~Asking();

   private:
    bool is_on_;
    MemoryHistory::Stack before_;
  };

  [[nodiscard]] c10::CachingDeviceAllocator::SegmentInfo segment() const;

 private:
  struct Owner {
    BlockId block;
    MemoryHistory::Stack stack;
  };

  void on_event(const EngineEvent& event) noexcept override;
  void taken(const EngineEvent& event, MemoryHistory::Stack stack) noexcept;
  void given_back(Bytes offset, Bytes bytes) noexcept;
  [[nodiscard]] MemoryHistory::Stack stack_of(BlockId block) const noexcept;

  MemoryHistory& history_;
  c10::DeviceIndex device_;
  std::size_t address_;
  Engine& engine_;
  std::atomic<bool> follows_ = false;
  mutable std::mutex mutex_;
  std::vector<Owner> owners_;  // by BlockId::index()
};

}  // namespace coop::plugin
