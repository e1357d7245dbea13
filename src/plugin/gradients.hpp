#pragma once

namespace coop::plugin {

// Whether autograd is putting a gradient into a parameter's `.grad` on this thread. A gradient is there
// to stay, and is written to by the next backward pass and by the optimizer: it is better kept than made
// again from a whole forward and backward pass.
bool is_accumulating_gradient();

}  // namespace coop::plugin
