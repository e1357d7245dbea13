#include "core/lineage/missing.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace coop {
namespace {

class Quiet final : public GraphListener {
 public:
  void value_goes(ValueId /*id*/, const Value& /*value*/) noexcept override {}
  void call_goes(CallId /*id*/, const Call& /*call*/) noexcept override {}
};

// A chain source -> 0 -> 1 -> 2 -> ..., where making number i costs 10^i.
class MissingTest : public ::testing::Test {
 protected:
  MissingTest() : graph_(listener_) {
    ValueId before = graph_.add_source(graph_.add_storage(1), 1, kThere);
    double cost = 1;
    for (int i = 0; i < 5; ++i) {
      const Graph::Input input{.value = before};
      const CallId call = graph_.add_call(1, cost, 1, {&input, 1});
      storages_.push_back(graph_.add_storage(1));
      before = graph_.add_output(call, 0, storages_.back(), 1, kThere);
      values_.push_back(before);
      cost *= 10;
    }
  }
  void evict(std::size_t i) { graph_.values()[values_[i]].block = {}; }
  double around(std::size_t i) {
    return missing_around(graph_, graph_.values()[values_[i]], ++walk_).cost;
  }

  static constexpr BlockId kThere{7, 0};
  Quiet listener_;
  Graph graph_;
  std::vector<StorageId> storages_;
  std::vector<ValueId> values_;
  std::uint64_t walk_ = 0;
};

TEST_F(MissingTest, NothingIsMissing) { EXPECT_EQ(around(2), 0); }

TEST_F(MissingTest, BackToWhatIsThereAndForwardToWhatIsThere) {
  evict(1);
  evict(3);
  EXPECT_EQ(around(2), 10 + 1000);
  evict(0);
  EXPECT_EQ(around(2), 1 + 10 + 1000);
  EXPECT_EQ(around(4), 1000) << "2 is there, so what is before it does not count";
}

TEST_F(MissingTest, WhatNobodyCanReadCountsOnTheWayBackOnly) {
  evict(1);
  evict(3);
  graph_.remove_storage(storages_[1]);
  graph_.remove_storage(storages_[3]);
  EXPECT_EQ(around(2), 10) << "1 must be made to make 2; nobody wants 3";
  evict(4);
  EXPECT_EQ(around(2), 10 + 10000) << "but through it one gets to 4";
}

// It is not known how much more there is, only that it is a lot.
TEST_F(MissingTest, WhereNotAllIsLookedAtWhatWasSeenCountsManyTimes) {
  const auto behind = [&](int length) {
    ValueId before = values_[4];
    for (int i = 0; i < length; ++i) {
      const Graph::Input input{.value = before};
      const CallId call = graph_.add_call(1, 1, 1, {&input, 1});
      before = graph_.add_output(call, 0, graph_.add_storage(1), 1, {});
    }
    const Graph::Input input{.value = before};
    const CallId call = graph_.add_call(1, 1, 1, {&input, 1});
    const ValueId last = graph_.add_output(call, 0, graph_.add_storage(1), 1, kThere);
    return missing_around(graph_, graph_.values()[last], ++walk_).cost;
  };
  EXPECT_EQ(behind(100), 100);
  EXPECT_GT(behind(200), 1000);
}

TEST_F(MissingTest, WhatIsReachedTwiceCountsOnce) {
  evict(1);
  const std::vector<Graph::Input> twice{{.value = values_[1]}, {.value = values_[1]}};
  const CallId call = graph_.add_call(1, 7, 1, twice);
  const ValueId both = graph_.add_output(call, 0, graph_.add_storage(1), 1, kThere);
  EXPECT_EQ(missing_around(graph_, graph_.values()[both], ++walk_).cost, 10);
}

// What is read and made at once, where nothing can go meanwhile; Sources stay anyway.
TEST_F(MissingTest, TheWidestCallOnTheWayBack) {
  const auto widest = [&](ValueId id) {
    return missing_around(graph_, graph_.values()[id], ++walk_).widest;
  };
  EXPECT_EQ(widest(values_[0]), 1U) << "its input is a Source";
  EXPECT_EQ(widest(values_[1]), 2U);
  const std::vector<Graph::Input> inputs{{.value = values_[3]}, {.value = values_[4]}};
  const CallId wide = graph_.add_call(1, 1, 1, inputs);
  const ValueId logits = graph_.add_output(wide, 0, graph_.add_storage(1), 100, kThere);
  const Graph::Input input{.value = logits};
  const CallId narrow = graph_.add_call(1, 1, 1, {&input, 1});
  const ValueId gradient = graph_.add_output(narrow, 0, graph_.add_storage(1), 1, kThere);
  EXPECT_EQ(widest(gradient), 101U);
  graph_.values()[logits].block = {};
  EXPECT_EQ(widest(gradient), 102U) << "that has to be made first, from two";
  const Graph::Input changed{.value = values_[4], .is_mutated = true};
  const CallId in_place = graph_.add_call(1, 1, 1, {&changed, 1});
  const ValueId after = graph_.add_output(in_place, 0, graph_.add_storage(1), 1, kThere);
  EXPECT_EQ(widest(after), 1U) << "in the same place";
}

}  // namespace
}  // namespace coop
