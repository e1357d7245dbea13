#pragma once

// Which budgets an operator concerns, where several devices have one each.
//
// Note [Several budgets]
//
// An operator belongs to the budget whose tensors it has. One that has tensors of several (a copy from one GPU to
// another), or makes a tensor for another device than its own, is heard by all of them: each brings back and pins what is
// its own, and makes safe what hangs on what is written there. None records it: what it makes are Sources, and what
// other Calls would have had to go through it to be made again is made safe before, as if foreign memory were read. So
// a replay of one budget is made of operators that have nothing but its own tensors, and never needs another's contents.
//
// That is also why nobody waits in a circle. Whoever waits for a replay of budget B, with contents of A pinned or not,
// waits for a thread that runs operators of B alone; and such a thread waits for nobody: memory, of whichever pool
// an operator asks for it on the way, never waits for a replay (it is there or refused), pins are never waited for, and
// who has the turn to draw (Note [One draws at a time]) gives it away before he waits for a replay. So it does not
// matter in which order an operator is told to its budgets.
//
// A thread is inside all budgets in force or none: one that ends waits for whoever is inside an operator, whatever
// budget that is of.

#include <span>

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include "plugin/session.hpp"

namespace coop::plugin {

using Concerned = c10::SmallVector<Session*, 2>;

// At least one. For a thread that is inside.
[[nodiscard]] Concerned concerned_by(const CurrentSession& inside,
                                     std::span<const c10::IValue> arguments);

}  // namespace coop::plugin
