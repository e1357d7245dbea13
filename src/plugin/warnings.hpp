#pragma once

// What the program should know and nothing depends on. Said by way of Python's warnings, which know how to
// be silenced, and once for each operator. Not to be called while a lock is held.

#include <cstddef>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>

namespace coop::plugin {

// An unknown operator has run. `bytes`: that could have been evicted but for it.
void warn_of_unknown(const c10::OperatorHandle& op, std::size_t bytes);

// Recomputing makes the program so many times slower; `advice` is what_would_halve() that.
void warn_of_slowdown(double slowdown, std::size_t budget, const std::string& advice);

// What `made_by` made was written, and no operator did it.
void warn_of_unseen_write(const std::string& made_by, std::size_t bytes);

}  // namespace coop::plugin
