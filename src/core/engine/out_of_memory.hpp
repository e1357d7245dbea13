#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/errors.hpp"
#include "core/lineage/graph.hpp"
#include "core/pool/pool.hpp"

namespace coop {

// What a block is held for, when a request cannot be served.
enum class Holder : std::uint8_t {
  kInput,      // pinned: what a running operator reads or changes
  kBeingMade,  // pinned: outputs and workspaces that are not handed over yet
  kEvictable,  // can be made again
  kSource,     // cannot be made again, and is in use by the program
  kLineage,    // cannot be made again, and is only there for what is made from it
  kExported,   // somebody outside knows its address
  kSmall,      // slabs of small blocks
  kElsewhere,  // room for contents that are outside the pool
};
inline constexpr std::size_t kHolders = 8;
[[nodiscard]] std::string_view describe(Holder holder);

struct Holding {
  Bytes bytes = 0;
  std::size_t blocks = 0;
};

// A single block that is in the way.
struct LargeBlock {
  Holder holder = Holder::kSource;
  Bytes bytes = 0;
  Token storage = 0;        // whose contents it has; 0 if nobody's
  bool is_lasting = false;  // the program's, and cannot be made again
};

// Where the pool's bytes were when a request could not be served.
struct MemoryReport {
  Bytes requested = 0;
  Bytes pool = 0;
  Bytes free = 0;
  // The most free and evictable bytes between blocks that may not move: the largest request that could
  // be served.
  Bytes largest_room = 0;
  // A pool of this size would have served the request, were all else the same; 0: not known.
  Bytes smallest_budget = 0;
  // In what the program has and cannot be made again, whoever uses it now: no eviction makes it less.
  Bytes lasting = 0;
  std::array<Holding, kHolders> held{};
  std::vector<LargeBlock> largest;  // of those that cannot be evicted, the largest first
  const Pool* of = nullptr;         // for whoever has several

  [[nodiscard]] const Holding& held_as(Holder holder) const {
    return held[static_cast<std::size_t>(holder)];
  }
};

// Knows who has a block. This one knows no more than the pool: pinned, movable, or in its place for good.
class BlockWitness {
 public:
  BlockWitness() = default;
  BlockWitness(const BlockWitness&) = delete;
  BlockWitness& operator=(const BlockWitness&) = delete;
  virtual ~BlockWitness() = default;
  // Of a block that cannot be evicted now.
  [[nodiscard]] virtual LargeBlock witness(BlockId block, const BlockInfo& info) const;
};

[[nodiscard]] MemoryReport report_memory(const Pool& pool, Bytes requested,
                                         const BlockWitness& witness = BlockWitness());

// The request cannot be served. Nothing is lost: what was evicted on the way can be recomputed, and
// the program can go on.
class OutOfMemory : public Error {
 public:
  // `why`: what else there is to say.
  explicit OutOfMemory(const MemoryReport& report, const std::string& why = {});
  [[nodiscard]] const MemoryReport& report() const { return report_; }
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  MemoryReport report_;
  std::string why_;
};

}  // namespace coop
