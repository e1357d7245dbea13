#pragma once

// How large a budget is, from what a person writes.

#include <string_view>

#include "core/base/bytes.hpp"

namespace coop::plugin {

// What this process may use of the machine's memory.
Bytes host_memory_bytes();

// "8GiB", "512MB", "4096", or "50%" of `whole`. Throws InvalidArgument, which says what is right.
Bytes budget_bytes(std::string_view text, Bytes whole);

}  // namespace coop::plugin
