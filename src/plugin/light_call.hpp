#pragma once

// Operators of which the engine need not hear: those on small tensors, which are most of those that a program calls
// in a hurry.
//
// Note [Light calls]
//
// A block of the small area is never evicted and never moves, and what it holds is a Source: nobody asks how to
// make it again. So the engine has no part in an operator if
//   - what it reads is small, or from outside the pool: it is there, and stays there;
//   - what it writes is, besides, nothing that a recorded Call has read: nothing is made from its old
//     contents, so nothing has to be protected;
//   - what it makes is small.
// The first two are seen before it runs. Of the third nobody knows before: if it does make something
// large, it is recorded then, from its arguments, which were kept for that. It has not changed what it has
// read (if it has, its results are Sources). What it makes stays raw memory until something large is made
// from it, or it is asked for otherwise: then it becomes a storage of the engine's, with contents from outside.
//
// Not light: whatever is run out of our sight, exchanges storages, or draws numbers and may be run again.
// Once the budget binds no operator is: what comes next is then foretold from what came before, and allocated
// where the plan says.
//
// While memory is ample (ease.hpp) all of this holds of large tensors as well, and for operators that draw numbers.

#include <ATen/core/dispatch/Dispatcher.h>

#include "plugin/operator_facts.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {

// Its arguments are on the stack. False, with nothing done, if it is not light.
bool run_if_light(Session& session, const c10::OperatorHandle& op, const OperatorFacts& facts,
                  c10::DispatchKeySet below, torch::jit::Stack& stack);

// Whether a session that is at ease need not hear of an operator, whoever else does.
[[nodiscard]] bool is_light_at_ease(Session& session, const OperatorFacts& facts,
                                    const torch::jit::Stack& stack);

}  // namespace coop::plugin
