#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace coop::cli {

// The parts, one after the other. (A chain of + is no slower to write, but g++ 12 at -O3 warns of overlaps
// inside of std::string that are not there.)
inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

}  // namespace coop::cli
