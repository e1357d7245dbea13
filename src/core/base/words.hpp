#pragma once

#include <span>
#include <string>
#include <string_view>

namespace coop {

// What to say of a word that is none of those there are: "did you mean run?" where one of them is close, otherwise
// "there are run, sweep".
std::string what_was_meant(std::string_view word, std::span<const std::string_view> known);

}  // namespace coop
