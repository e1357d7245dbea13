#include "core/engine/out_of_memory.hpp"

#include <algorithm>

namespace coop {
namespace {

constexpr std::size_t kLargestNamed = 8;

std::string describe(const MemoryReport& report) {
  std::string text = "out of memory: " + format_bytes(report.requested) +
                     " were asked for, and the most that could be made free in one piece is " +
                     format_bytes(report.largest_room) + ". Of " + format_bytes(report.pool) +
                     ", " + format_bytes(report.free) + " are free";
  for (std::size_t i = 0; i < kHolders; ++i) {
    const Holding& held = report.held[i];
    if (held.blocks == 0) continue;
    text += ", " + format_bytes(held.bytes) + " in " + std::to_string(held.blocks) +
            (held.blocks == 1 ? " block " : " blocks ") +
            std::string(coop::describe(static_cast<Holder>(i)));
  }
  text += ".";
  if (report.smallest_budget == 0) return text;
  if (report.smallest_budget > kMaxPoolBytes) return text + " No pool can be large enough for it.";
  return text + " It would be served with " + format_bytes(report.smallest_budget - report.pool) +
         " more, a budget of " + format_bytes(report.smallest_budget) + ".";
}

}  // namespace

std::string_view describe(Holder holder) {
  switch (holder) {
    case Holder::kInput:
      return "read or changed by running operators";
    case Holder::kBeingMade:
      return "of outputs and workspaces of running operators";
    case Holder::kEvictable:
      return "that can be recomputed";
    case Holder::kSource:
      return "that cannot be recomputed";
    case Holder::kLineage:
      return "kept only to recompute others";
    case Holder::kExported:
      return "whose address is known outside";
    case Holder::kSmall:
      return "of small tensors";
    case Holder::kElsewhere:
      return "for tensors that lie outside the pool";
  }
  return "";
}

LargeBlock BlockWitness::witness(BlockId /*block*/, const BlockInfo& info) const {
  const Holder holder = info.tenure == Tenure::kStays ? Holder::kExported : Holder::kSource;
  return {.holder = info.pins > 0 ? Holder::kInput : holder,
          .bytes = info.bytes,
          .is_lasting = info.pins == 0};
}

MemoryReport report_memory(const Pool& pool, Bytes requested, const BlockWitness& witness) {
  MemoryReport report{.requested = requested, .pool = pool.bytes(), .free = pool.free_bytes()};
  report.of = &pool;
  Bytes room = 0;
  for (const Chunk* chunk : pool.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const Bytes bytes = to_bytes(chunk->extent(slot).size());
      if (chunk->is_hole(slot)) {
        room += bytes;
        report.largest_room = std::max(report.largest_room, room);
        continue;
      }
      const BlockIndex index = chunk->block_at(slot);
      const BlockId id = pool.id_of(index);
      LargeBlock block{.holder = Holder::kSmall, .bytes = bytes};
      if (!chunk->is_fixed(slot)) {
        block.holder = Holder::kEvictable;
      } else if (pool.contains(id)) {
        block = witness.witness(id, pool.info(id));
      }
      Holding& held = report.held[static_cast<std::size_t>(block.holder)];
      held.bytes += bytes;
      ++held.blocks;
      if (block.holder == Holder::kEvictable) {
        room += bytes;
      } else {
        // What may move slides aside: room goes on behind it.
        if (!pool.is_movable(index)) room = 0;
        report.largest.push_back(block);
        if (block.is_lasting) report.lasting += bytes;
      }
      report.largest_room = std::max(report.largest_room, room);
    }
  }
  if (pool.ignores_addresses()) {
    report.largest_room = report.free + report.held_as(Holder::kEvictable).bytes;
    room = report.largest_room;
  }
  // What is free inside slabs was counted as free.
  Holding& small = report.held[static_cast<std::size_t>(Holder::kSmall)];
  small.bytes = report.pool - report.free;
  for (const Holding& held : report.held) {
    if (&held != &small) small.bytes -= held.bytes;
  }
  report.lasting += small.bytes;
  // A longer pool has more room at its end, and what is free or evictable there already counts.
  // More than a pool can be is counted as well: nobody must be told that a smaller one would do.
  constexpr Bytes kCounted = Bytes{1} << 62U;
  const Bytes asked = (std::min(requested, kCounted) + kGrainBytes - 1) / kGrainBytes * kGrainBytes;
  report.smallest_budget = report.pool + asked - std::min(room, asked);
  // Slabs are larger in a larger pool.
  const Bytes larger = std::min(2 * report.smallest_budget - report.pool, kMaxPoolBytes);
  const Bytes slab_growth = Pool::slab_bytes(larger) - Pool::slab_bytes(report.pool);
  report.smallest_budget += small.blocks * slab_growth;
  const auto named = std::min(report.largest.size(), kLargestNamed);
  std::partial_sort(report.largest.begin(),
                    report.largest.begin() + static_cast<std::ptrdiff_t>(named),
                    report.largest.end(),
                    [](const LargeBlock& a, const LargeBlock& b) { return a.bytes > b.bytes; });
  report.largest.resize(named);
  return report;
}

OutOfMemory::OutOfMemory(const MemoryReport& report, const std::string& why)
    : Error(describe(report) + (why.empty() ? "" : " " + why)), report_(report), why_(why) {}

}  // namespace coop
