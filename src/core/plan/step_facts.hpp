#pragma once

// What is true of a step whatever is dropped in it: the part of planning that does not change while drops are
// tried.
//
// Note [Versions]
//
// A *version* is one state of a storage's contents: what a call made or wrote, or what came from outside. The
// latest is *current*; one that was overwritten or whose storage was released is *past*: the program cannot
// read it, but a call that did may have to be run again, and then it has to be made again too.
//
//     storage 7     v0 ----- v3 (written by call 2) ------- v9 (written by call 5) ----- released
//     current       v0       v3                             v9                           none
//
// Versions that calls made are numbered by call, then by output (StepPlan::version); behind them come those
// from outside. A version without a producer is a *Source*: it cannot be made again and is never dropped.
// Sources are what comes from outside, what is too small to be worth it, all that storages hold which are there
// all through the step (others know where), and what a call makes that cannot be run again.
//
// Note [Writes to Sources]
//
// Once a Source is overwritten, what was made from it can be made again no more. So the nearest current
// versions made from it have to be there before the write (`protects`), and are Sources from then on
// (`fixed_from`). A Source whose storage is released stays in memory while something may have to be made from
// it. Both as the engine does it.
//
// Note [Kept versions]
//
// The memory of what was made, and can be made again, goes when the program lets go of it. But something smaller may
// have been made larger, and only the larger is needed again: the input of a norm that computes in float32.
//
//     storage      x (1 MiB) ---- read by a cast ---- released
//     storage                     c (2 MiB) ------------------- ... ------------- read in the backward pass
//
// To drop c and make it again from x is cheap, and x takes half of its memory; without x all that came before would have
// to be made again. So x may be *kept* beyond its release, as long as something could be made from it (`kept_until`). Who
// is kept is a choice (Drops); a kept version is as if it were current, and may itself be dropped, and come back. What was
// overwritten cannot be kept: its memory is the next version's.
//
// Time. Calls are numbered as in the record; the end of the step counts as one more call, which reads all that
// is alive. Everything here takes time and memory linear in the record.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/lists.hpp"
#include "core/plan/step_record.hpp"

namespace coop {

struct StepFacts {
  using Call = std::uint32_t;
  using Version = std::uint32_t;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct VersionFacts {
    Bytes bytes = 0;          // in whole grains, unless it is small
    Call producer = kNone;    // none: a Source
    Call current_until = 0;   // the first call at whose beginning it is not current any more
    Call fixed_from = kNone;  // from this call on a Source
    // The same as current_until, were it kept when it is released; 0: it cannot be.
    Call kept_until = 0;
    std::uint32_t storage = 0;
    bool is_there_before = false;  // the step begins: it has a place
  };
  struct Change {
    Version before = 0;
    Version after = 0;
  };

  // Blocks up to `small_limit` are small; chains of calls longer than `most_depth` are cut, as by the engine.
  StepFacts(const StepRecord& step, Bytes small_limit, std::uint32_t most_depth);

  // What it writes, then what it makes.
  [[nodiscard]] Numbers outputs(Call call) const {
    return {first_version[call], first_version[call + 1]};
  }
  [[nodiscard]] bool is_current(Version version, Call call) const {
    return versions[version].current_until > call;
  }
  [[nodiscard]] bool is_keepable(Version version) const {
    return versions[version].kept_until != 0;
  }
  [[nodiscard]] bool is_droppable(Version version, Call call) const {
    return versions[version].producer != kNone && versions[version].fixed_from > call;
  }

  Call calls = 0;                      // of the program; the end of the step is call `calls`
  std::vector<VersionFacts> versions;  // those made by calls come first
  Bytes there_before = 0;
  double total_cost = 0;  // of all calls

  // --- by call, and the end of the step ---
  std::vector<Version> first_version;  // of its outputs; they end where those of the next begin
  std::vector<double> cost;
  std::vector<Bytes> workspace;  // in whole grains, unless it is small
  Lists<Version> arrives;        // from outside, before the call
  Lists<Version> gone_before;    // the same as gone_after, but after those have arrived
  Lists<Version> inputs;         // what it reads, each once
  Lists<Version> protects;       // what has to be there besides, see Note [Writes to Sources]
  Lists<Version> early;      // what comes back then if it is missing, see Note [Coming back early]
  Lists<Version> makes;      // in new memory
  Lists<Change> changes;     // where they are, from what they were
  Lists<Change> overwrites;  // where they are, whatever they were
  // Not needed after the call, by nobody: the memory goes. What can be kept comes twice: then, and when it would go if
  // it were.
  Lists<Version> gone_after;

  // --- by version ---
  Lists<Call> readers;  // that can be run again, in order
  Lists<Call> uses;     // calls at which it has to be there, in order
};

// Every block begins at a multiple of this, and takes a multiple of it: the pool's grain.
inline constexpr Bytes kBlockAlignment = 512;
constexpr Bytes whole_grains(Bytes bytes) {
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

}  // namespace coop
