#include "core/base/numbered_queue.hpp"

#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/split_mix.hpp"

namespace coop {
namespace {

TEST(NumberedQueue, CountsOnForEver) {
  NumberedQueue<int> queue(7);
  for (int i = 0; i < 1000; ++i) {
    queue.push(i);
    if (queue.size() > 3) queue.forget_until(queue.first() + 1);
  }
  EXPECT_EQ(queue.first(), 1004U);
  EXPECT_EQ(queue.end(), 1007U);
  EXPECT_FALSE(queue.contains(1003));
  EXPECT_TRUE(queue.contains(1006));
  EXPECT_FALSE(queue.contains(1007));
  EXPECT_EQ(queue[1004], 997);
  EXPECT_EQ(queue[1006], 999);
}

TEST(NumberedQueue, IsADequeWhateverComesAndGoes) {
  SplitMix random(11);
  NumberedQueue<std::uint64_t> queue;
  std::deque<std::uint64_t> like;
  std::uint64_t next = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> some(random.next() % 9);
    for (std::uint64_t& it : some) it = next++;
    queue.append(some);
    like.insert(like.end(), some.begin(), some.end());
    const std::uint64_t gone = random.next() % (like.size() + 1);
    if (random.next() % 3 == 0) {
      queue.forget_until(queue.first() + gone);
      like.erase(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    ASSERT_EQ(queue.size(), like.size());
    for (std::size_t i = 0; i < like.size(); ++i) ASSERT_EQ(queue[queue.first() + i], like[i]);
  }
}

}  // namespace
}  // namespace coop
