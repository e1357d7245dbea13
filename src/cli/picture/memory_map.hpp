#pragma once

// A map of a run: addresses upwards, time to the right, a box for every block, coloured by what it was
// for. Where a block ends because it was evicted, and where it begins because it was computed again, its
// edge is drawn; beneath, how much of that happened when.
//
// Blocks smaller than a few pixels are not drawn one by one: a cell of two by two pixels takes the colour
// of what covers most of it. So the picture of a million blocks is as large as that of a thousand.

#include <string>

#include "cli/picture/picture_file.hpp"
#include "sim/simulator/block_history.hpp"
#include "sim/simulator/simulator.hpp"

namespace coop::cli {

struct MappedRun {
  const sim::Trace& trace;
  std::string name;
  std::string policy;
  const sim::SimulationResult& result;
  Bytes peak = 0;
};

Picture draw_memory_map(sim::BlockHistory& history, const MappedRun& run);

}  // namespace coop::cli
