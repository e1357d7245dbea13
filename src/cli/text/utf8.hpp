#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace coop::cli {

// Names of operators and files are whatever somebody wrote. Bytes that are not UTF-8 become U+FFFD.
std::string mended_utf8(std::string_view text);

// How many characters; as wide as a terminal shows what we write.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace coop::cli
