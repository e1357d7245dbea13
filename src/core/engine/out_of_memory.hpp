#pragma once

#include <string>

#include "core/base/bytes.hpp"
#include "core/base/errors.hpp"
#include "core/pool/pool.hpp"

namespace coop {

// Where the pool's bytes were when a request could not be served.
struct MemoryReport {
  Bytes requested = 0;
  Bytes pool = 0;
  Bytes free = 0;
  Bytes pinned = 0;     // in use by the running operator
  Bytes evictable = 0;  // not pinned, can be recomputed
  Bytes movable = 0;    // not pinned, cannot be recomputed, may be copied elsewhere
  Bytes staying = 0;    // not pinned, may not even be moved
  // The most free and evictable bytes between blocks that may not move: the largest request that
  // could be served.
  Bytes largest_room = 0;
};

[[nodiscard]] MemoryReport report_memory(const Pool& pool, Bytes requested);

// The request cannot be served. Nothing is lost: what was evicted on the way can be recomputed, and
// the program can go on.
class OutOfMemory : public Error {
 public:
  // `why`: what else there is to say.
  explicit OutOfMemory(const MemoryReport& report, const std::string& why = {});
  [[nodiscard]] const MemoryReport& report() const { return report_; }

 private:
  MemoryReport report_;
};

}  // namespace coop
