#pragma once

// A pool and a policy together: an allocation that finds no hole makes one.
//
//     allocate(request)
//       1. a hole that fits                         -> done, nothing was evicted
//       2. ask the policy for victims;
//          evict them, and again                    -> until the request fits
//          or move blocks, where that costs less    -> once
//       3. no victims: slide movable blocks aside, or move some to the other side of what may not move
//       4. OutOfMemory
//
// The loop ends because every round frees a block that was held when it began, finds that one must stay, or is
// the last. (The owner, who is told of evictions, must not allocate in between.)

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/compaction.hpp"
#include "core/engine/moving_out.hpp"
#include "core/engine/out_of_memory.hpp"
#include "core/policy/policy.hpp"
#include "core/pool/pool.hpp"

namespace coop {

// Whoever owns the blocks' contents.
class BlockOwner : public BlockWitness {
 public:
  // What evict() and relocate() throw leaves the block as it is.

  // The block's contents are dropped. The pool frees the block when this returns; the owner must not
  // allocate or free blocks meanwhile.
  virtual void evict(BlockId id) = 0;
  // The block's contents are copied to another address. The two ranges may overlap if that is further left.
  virtual void relocate(BlockId id, Bytes from, Bytes to, Bytes bytes) = 0;

  // What it takes to copy, in nanoseconds.
  [[nodiscard]] virtual double copy_ns_per_byte() const { return kCopyNsPerByte; }

  // Costs depend on what else is evicted, and are brought up to date when they matter. Called before
  // victims are chosen ...
  virtual void prepare_search() {}
  // ... and with those that were. True if one of them does not cost what the pool had: the choice is
  // then made again.
  virtual bool correct_costs(std::span<const BlockId> /*victims*/) { return false; }
  // The last word, before blocks go. True if it turns out that some must stay: those are evictable no more.
  virtual bool keeps_some(std::span<const BlockId> /*victims*/) noexcept { return false; }
};

// Definitions as in the Coop paper.
struct EvictionStats {
  std::uint64_t allocations = 0;
  std::uint64_t searches = 0;  // allocations that had to make room
  std::uint64_t served = 0;    // of those
  std::uint64_t evictions = 0;
  Bytes evicted_bytes = 0;
  double evicted_cost = 0;  // nanoseconds that it would take to bring all of it back
  std::uint64_t moves = 0;
  Bytes moved_bytes = 0;
  double moving_ns = 0;         // that moves for requests have taken, as far as the owner knows
  std::uint64_t search_ns = 0;  // spent choosing victims and place, without the evicting itself
  std::uint64_t making_room_ns = 0;  // with it
  double fragmentation_sum = 0;      // over searches that were served: free / pool then

  [[nodiscard]] double fragmentation() const {
    return served == 0 ? 0.0 : fragmentation_sum / static_cast<double>(served);
  }
};

// Nanoseconds of real time, for measuring the search; injected so that the simulator stays exact.
using WallClock = std::uint64_t (*)();
std::uint64_t steady_clock_ns();

class EvictingPool {
 public:
  // Throws InvalidArgument if the policy needs addresses and the pool has none.
  EvictingPool(Pool& pool, Policy& policy, BlockOwner& owner, WallClock clock = steady_clock_ns);

  // Throws InvalidArgument, OutOfMemory, and what the owner throws.
  BlockId allocate(const Request& request);
  // At this offset, if that is free.
  std::optional<BlockId> allocate_at(const Request& request, Bytes offset);
  // An evictable block that is not pinned.
  void evict(BlockId id);
  // Pushes everything that may move to the left end.
  void move_all_left();
  // The same where the policy moves blocks, for the sake of requests to come. False if nothing has moved.
  bool gather_what_is_free();

  [[nodiscard]] Pool& pool() { return pool_; }
  [[nodiscard]] const EvictionStats& stats() const { return stats_; }

 private:
  std::optional<BlockId> make_room_and_allocate(const Request& request);
  std::optional<BlockId> serve(const Request& request);
  BlockId at_better_end(BlockId id, const Request& request, Bytes most_left_over);
  // Rounds in which costs are looked up, and the choice is made again.
  static constexpr int kMostCorrections = 64;
  std::optional<Moves> choose_victims_or_moves(const Request& request);
  template <typename Message>
  void tell_owner(Message&& message);
  void move_left(BlockId id);
  void copy_to(BlockId id, Bytes offset);
  void move_left(std::span<const BlockId> blocks);
  [[nodiscard]] std::vector<BlockId> movable_blocks() const;
  [[nodiscard]] std::optional<Moves> cheaper_than_victims(const Request& request);
  [[nodiscard]] std::optional<Moves> moves_without_victims(const Request& request);
  [[nodiscard]] std::optional<Moves> find_moves(const Request& request, CompactionTerms terms);
  template <typename Find>
  [[nodiscard]] std::optional<Moves> at_costs_by_now(const Find& find);
  [[nodiscard]] double dearest_that_goes(const Moves& moves, const CompactionTerms& terms) const;
  [[nodiscard]] std::optional<Moves> find_compaction(const Request& request,
                                                     const CompactionTerms& terms);
  // moving_out.cpp: Note [Moving out]
  bool make(const Moves& moves);
  bool keeps_some_of(const Moves::Part& part);
  Bytes empty(const Moves::Part& part);

  Pool& pool_;
  Policy& policy_;
  BlockOwner& owner_;
  WallClock clock_;
  EvictionStats stats_;
  std::vector<BlockId> victims_;
  bool is_telling_owner_ = false;
};

}  // namespace coop
