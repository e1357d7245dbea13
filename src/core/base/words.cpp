#include "core/base/words.hpp"

#include <algorithm>
#include <vector>

namespace coop {
namespace {

constexpr std::size_t kLongest = 64;  // a longer word is none that was mistyped

// Letters that were left out, added, changed, or swapped with the next.
std::size_t mistakes_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> counts(a.size() + 1,
                                               std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        counts[i][j] = i + j;
        continue;
      }
      const std::size_t changed = counts[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      counts[i][j] = std::min({changed, counts[i - 1][j] + 1, counts[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        counts[i][j] = std::min(counts[i][j], counts[i - 2][j - 2] + 1);
      }
    }
  }
  return counts[a.size()][b.size()];
}

}  // namespace

std::string what_was_meant(std::string_view word, std::span<const std::string_view> known) {
  std::string_view closest;
  std::size_t least = 2 + word.size() / 5;  // too many, for so few letters
  std::string names;
  for (const std::string_view each : known) {
    names.append(names.empty() ? "" : ", ").append(each);
    if (word.size() > kLongest) continue;
    const std::size_t mistakes = mistakes_between(word, each);
    if (mistakes < least) closest = each;
    least = std::min(least, mistakes);
  }
  return closest.empty() ? "there are " + names : "did you mean " + std::string(closest) + "?";
}

}  // namespace coop
