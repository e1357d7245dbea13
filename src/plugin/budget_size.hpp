#pragma once

// How large a budget is, from what a person writes.

#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"

namespace coop::plugin {

// "8GiB", "512MB", "4096", or "50%" of `whole`. Throws InvalidArgument, which says what is right.
Bytes budget_bytes(std::string_view text, Bytes whole);
// To be advised: short, read by budget_bytes(), never less than `bytes` and little more. None if that would be more
// than `most`, which is at most a pool's most.
std::optional<std::string> size_of_at_least(Bytes bytes, Bytes most);

}  // namespace coop::plugin
