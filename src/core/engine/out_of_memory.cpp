#include "core/engine/out_of_memory.hpp"

#include <algorithm>
#include <string>

namespace coop {
namespace {

std::string describe(const MemoryReport& report) {
  return "out of memory: " + format_bytes(report.requested) +
         " were asked for, and the most that " + "could be made free in one piece is " +
         format_bytes(report.largest_room) + ". Of " + format_bytes(report.pool) + ", " +
         format_bytes(report.free) + " are free, " + format_bytes(report.pinned) +
         " pinned by the running operator, " + format_bytes(report.evictable) + " evictable, " +
         format_bytes(report.movable) + " movable, " + format_bytes(report.staying) +
         " may not be touched.";
}

}  // namespace

MemoryReport report_memory(const Pool& pool, Bytes requested) {
  MemoryReport report{.requested = requested, .pool = pool.bytes(), .free = pool.free_bytes()};
  Bytes room = 0;
  for (const Chunk* chunk : pool.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const Bytes bytes = to_bytes(chunk->extent(slot).size());
      if (chunk->is_hole(slot)) {
        room += bytes;
      } else if (!chunk->is_fixed(slot)) {
        room += bytes;
        report.evictable += bytes;
      } else if (pool.is_movable(chunk->block_at(slot))) {
        report.movable += bytes;  // it slides aside: room goes on behind it
      } else {
        const BlockId id = pool.id_of(chunk->block_at(slot));
        if (pool.contains(id) && pool.info(id).pins > 0) report.pinned += bytes;
        room = 0;
      }
      report.largest_room = std::max(report.largest_room, room);
    }
  }
  // The rest: blocks whose address somebody knows, and slabs but for what is free inside them.
  const Bytes accounted = report.free + report.pinned + report.evictable + report.movable;
  report.staying = report.pool - accounted;
  return report;
}

OutOfMemory::OutOfMemory(const MemoryReport& report, const std::string& why)
    : Error(describe(report) + (why.empty() ? "" : " " + why)), report_(report) {}

}  // namespace coop
