#pragma once

// Note [Coming back early]
//
// What is dropped comes back when it is needed, made from its inputs. An input that the program has let go by then is
// past, and has to be made again too. Where that happens shortly before, it is better to be early:
//
//     call     3        4 ...     20        21 ...   25
//     c        made     read      read, released
//     t                 made                         read
//
// t, made from c, comes back at call 20 rather than 25, while c is there. (c is the state of an LSTM's cell, t its tanh:
// a gate of the next cell needs c in the backward pass, then c goes, then t is needed.) Only where t is needed soon after:
// until then it takes memory.

#include "core/plan/lists.hpp"
#include "core/plan/step_facts.hpp"

namespace coop {

// By call, and the end of the step: the versions that come back then, if they are missing and no drop says otherwise.
[[nodiscard]] Lists<StepFacts::Version> find_early(const StepFacts& facts);

}  // namespace coop
