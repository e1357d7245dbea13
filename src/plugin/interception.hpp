#pragma once

// Between the program and PyTorch's kernels: every operator of a thread in scope comes through here.

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

namespace coop::plugin {

// The boxed fallback for our dispatch key.
void intercept(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Makes us see the operators that Python code calls while it handles one, where PyTorch switches our key
// off for it.
void intercept_below_python();

// Between these the thread's operators are seen, with or without a budget; the end tells their names.
// For tests: those with these numbers fail before they begin, as if there were no memory for them.
void begin_watching(std::vector<std::int64_t> failing);
std::vector<std::string> end_watching();

// Runs a few operators, forward and backward, and throws if they do not all come through here, once
// each. PyTorch promises nobody this key.
void prove_interception();

}  // namespace coop::plugin
