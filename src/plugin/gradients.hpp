#pragma once

#include <c10/core/StorageImpl.h>

namespace coop::plugin {

// Whether autograd is putting a gradient into a parameter's `.grad` on this thread. A gradient is there
// to stay, and is written to by the next backward pass and by the optimizer: it is better kept than made
// again from a whole forward and backward pass.
bool is_accumulating_gradient();
// The storage of that parameter. Null if there is none.
c10::StorageImpl* parameter_of_gradient();

// Note [Backward passes that failed]
//
// Where an error ends a backward pass, PyTorch keeps what was still to be done in a queue of the thread, and
// with it that part of the graph and all that is saved there, until the next pass empties the queue. While a
// budget is in force that only takes memory, as it does without. At its end we would bring all of that back
// for nobody; so it is dropped before, by a pass over nothing. Where PyTorch refuses that (in a process that
// was forked with a GPU in use), the end of the budget must go on all the same.
void drop_failed_backward() noexcept;

}  // namespace coop::plugin
