#pragma once

// Which of the program's modules an operator belongs to, for recordings.
//
// Forward: the one that its thread is in, which Python says when it enters and leaves one. Backward: the one whose
// forward made the node that runs. Autograd numbers the nodes of a thread as it makes them, so that those of a module are
// the ones between two numbers, and nothing need be noted for each.

#include <string>

namespace coop::plugin {

// From here on; empty: none.
void enter_module(const std::string& name);
// Empty: none, or one from before the last forget_modules().
[[nodiscard]] std::string module_of_this_thread();
void forget_modules() noexcept;

}  // namespace coop::plugin
