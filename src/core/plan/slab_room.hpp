#pragma once

#include <cstddef>
#include <span>

#include "core/base/bytes.hpp"
#include "core/plan/step_evaluation.hpp"

namespace coop {

// The most room that these small blocks take in slabs as the pool has them (core/pool/small_area.hpp), with a slab
// more of each size: slabs of which some slots are free do not become one.
[[nodiscard]] Bytes slab_room(std::span<const PlannedBlock> blocks, Bytes small_limit, Bytes budget,
                              std::size_t moments);

}  // namespace coop
