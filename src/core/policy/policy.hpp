#pragma once

// A policy decides what is evicted for a request that no hole can serve, and how blocks are placed
// so that such requests are cheap. It only reads the pool; whoever asked does the evicting.
//
// A new policy is one file with a score (see coop_paper.cpp) and one line in policies.inc.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/pool/pool.hpp"

namespace coop {

struct Request {
  Bytes bytes = 0;
  Placement placement = Placement::kExpensive;
  double now = 0;  // on the clock on which blocks were touched, in nanoseconds
};

// What beside a block's own cost counts as the price of losing it.
enum class Surroundings : std::uint8_t {
  kRegions,  // everything evicted that is connected with it, as DTR has it: quick, and too much
  kMissing,  // what would have to be made first, and what cannot be made without it
};

struct PolicyTraits {
  std::string_view name;
  std::string_view summary;
  Fit fit = Fit::kFromEnds;
  bool keeps_cheap_apart = false;      // cheap blocks go to the other end
  bool keeps_long_lived_left = false;  // room for long-lived blocks is made at the left end
  Surroundings surroundings = Surroundings::kRegions;
  bool moves_blocks = false;  // where that costs less than what would have to be evicted
  bool looks_ahead = false;   // steps that repeat are planned (core/forecast)
};

struct PolicyOptions {
  std::uint64_t seed = 0;  // of policies that draw lots
};

class Policy {
 public:
  explicit Policy(const PolicyTraits& traits) : traits_(traits) {}
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  [[nodiscard]] const PolicyTraits& traits() const { return traits_; }

  // Whether it means anything that blocks are neighbours.
  [[nodiscard]] virtual bool needs_addresses() const { return false; }
  // Adds the blocks to evict next: a whole window, or one block after which it is asked again if
  // the request still does not fit. Only evictable blocks that are not pinned. Adding none means
  // that evicting cannot help.
  virtual void choose_victims(const Pool& pool, const Request& request,
                              std::vector<BlockId>& victims) = 0;

 private:
  PolicyTraits traits_;
};

// Of a policy or of an ablation. Throws InvalidArgument, naming those there are.
std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyOptions& options = {});
// All of them, the default first.
std::vector<PolicyTraits> known_policies();
// Policies without one of their parts, for experiments: the same code with other traits (ablations.inc).
std::vector<PolicyTraits> known_ablations();

}  // namespace coop
