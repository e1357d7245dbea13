#pragma once

// Numbers and text for people.

#include <cstddef>
#include <string>
#include <string_view>

namespace coop::cli {

std::string format_decimal(double number, int digits);
// "12.3%", of 0.123.
std::string format_percent(double fraction);
// "54.6 ms": the unit in which it is easiest to read.
std::string format_time(double ns);
// "1 call", "3 calls", "2 searches".
std::string format_count(std::size_t count, std::string_view of_what);
// "0.5" without noughts that say nothing.
std::string format_ratio(double ratio);

// Breaks the text into lines of at most this many columns where it can, each with `indent` before it.
std::string wrapped(std::string_view text, std::string_view indent = "", std::size_t columns = 96);

// All of it or an error: nobody takes half a result for a result. Throws Error.
void print(std::string_view text);

}  // namespace coop::cli
