#pragma once

// A sweep as text for people, as JSON for programs and as a picture.

#include <string>
#include <vector>

#include "cli/picture/picture_file.hpp"
#include "cli/sweep/reference.hpp"
#include "cli/sweep/sweep.hpp"

namespace coop::cli {

std::string sweep_text(const Sweep& sweep, const std::vector<Reference>& references);
// All traces together, in one table: how many fit, and means over those that fit with every policy.
std::string sweep_summary(const Sweep& sweep);
std::string sweep_json(const Sweep& sweep, const std::vector<Reference>& references);
// Of each trace a row of charts: overhead, fragmentation and search time against the ratio.
Picture draw_sweep(const Sweep& sweep, const std::vector<Reference>& references);

}  // namespace coop::cli
