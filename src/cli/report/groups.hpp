#pragma once

// How a report puts things together: under a number, and under a title.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"

namespace coop::cli {

// Names and places that the page has by number: 0 is none.
template <typename Thing>
class Numbered {
 public:
  Numbered() { list_.push_back({}); }
  std::uint64_t number(const Thing& thing) {
    if (thing == Thing{}) return 0;
    const auto [found, is_new] = numbers_.try_emplace(thing, list_.size());
    if (is_new) list_.push_back(thing);
    return found->second;
  }
  [[nodiscard]] const std::vector<Thing>& list() const { return list_; }

 private:
  std::vector<Thing> list_;
  std::map<Thing, std::uint64_t> numbers_;
};

// What belongs together under one title: an operator, or modules that are alike.
struct Group {
  std::string title;
  std::uint64_t times = 0;
  Bytes bytes = 0;
  double ns = 0;
};

class Groups {
 public:
  Group& at(const std::string& title) {
    Group& group = groups_[title];
    group.title = title;
    return group;
  }
  template <typename Figure>
  [[nodiscard]] std::vector<Group> most_first(Figure&& figure) const {
    std::vector<Group> list;
    for (const auto& [title, group] : groups_) list.push_back(group);
    std::stable_sort(list.begin(), list.end(),
                     [&](const Group& a, const Group& b) { return figure(a) > figure(b); });
    return list;
  }

 private:
  std::map<std::string, Group> groups_;
};

}  // namespace coop::cli
