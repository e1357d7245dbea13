// Note [Memory within a call] in core/engine/call_memory.hpp.
#include "core/engine/call_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "core/pool/grain.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

constexpr std::uint32_t kNone = StepRecord::kNone;

BlockId block(std::uint32_t number) { return {number, 1}; }

bool operator==(const StepRecord::Piece& a, const StepRecord::Piece& b) {
  return a.bytes == b.bytes && a.output == b.output && a.within == b.within && a.offset == b.offset;
}

// Its input in another layout, its weights, its result in that layout; and then the output.
TEST(CallMemory, WhatGoesBeforeTheOutputComesLiesInItsPlace) {
  CallMemory memory;
  memory.begin();
  memory.allocate(block(0), to_bytes(6), false);
  memory.allocate(block(1), to_bytes(1), true);
  memory.allocate(block(2), to_bytes(10), false);
  memory.free(block(1));
  memory.free(block(0));
  memory.allocate(block(3), to_bytes(10), false);
  memory.free(block(2));
  memory.note_output(block(3), 0);
  EXPECT_EQ(memory.lay_out(), to_bytes(10));
  const auto pieces = memory.pieces();
  ASSERT_EQ(pieces.size(), 3U);  // what is small has no place
  EXPECT_TRUE(pieces[0] == (StepRecord::Piece{to_bytes(6), kNone, 0, 0}));
  EXPECT_TRUE(pieces[1] == (StepRecord::Piece{to_bytes(10), kNone, kNone, 0}));
  EXPECT_TRUE(pieces[2] == (StepRecord::Piece{to_bytes(10), 0, kNone, 0}));
}

TEST(CallMemory, WhatIsGivenBackIsUsedAgain) {
  CallMemory memory;
  memory.begin();
  memory.allocate(block(0), to_bytes(4), false);
  memory.allocate(block(1), to_bytes(2), false);
  memory.free(block(0));
  memory.allocate(block(2), to_bytes(3), false);
  memory.allocate(block(3), to_bytes(2), false);
  EXPECT_EQ(memory.lay_out(), to_bytes(8));
  EXPECT_EQ(memory.pieces()[2].offset, 0U);
  EXPECT_EQ(memory.pieces()[3].offset, to_bytes(6));
  memory.begin();
  EXPECT_EQ(memory.lay_out(), 0U);
  EXPECT_TRUE(memory.pieces().empty());
}

// Calls inside of one another, and of several threads, end without one that begins between.
TEST(CallMemory, LaidOutAgainIsTheSameAgain) {
  CallMemory memory;
  memory.begin();
  for (std::uint32_t i = 0; i < 32; ++i) memory.allocate(block(i), to_bytes(1), false);
  memory.note_output(block(31), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(memory.lay_out(), to_bytes(31));
    EXPECT_EQ(memory.pieces().size(), 32U);
  }
}

TEST(CallMemory, TooManyHaveOnlyASum) {
  CallMemory memory;
  memory.begin();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    memory.allocate(block(i), to_bytes(1), false);
    if (i % 2 == 1) memory.free(block(i));
  }
  EXPECT_TRUE(memory.pieces().empty());
  EXPECT_GT(memory.lay_out(), to_bytes(100));
  EXPECT_TRUE(memory.pieces().empty());
}

struct Life {
  Bytes bytes = 0;
  std::uint32_t from = 0;
  std::uint32_t until = 0;  // events
  std::uint32_t output = kNone;
};

// Nothing lies where something else is at the same time, or beyond the workspace's end.
TEST(CallMemory, PiecesKeepApart) {
  testing::for_each_case(testing::scaled(20'000), [](testing::Case& one) {
    testing::Random& random = one.random;
    CallMemory memory;
    memory.begin();
    std::vector<Life> lives;
    std::vector<std::uint32_t> alive;
    std::uint32_t now = 0;
    for (const std::uint64_t events = 2 + random.below(30); now < events; ++now) {
      if (alive.empty() || random.below(5) < 3) {
        const Bytes bytes = to_bytes(static_cast<Grains>(1 + random.below(8)));
        alive.push_back(static_cast<std::uint32_t>(lives.size()));
        memory.allocate(block(alive.back()), bytes, false);
        lives.push_back({.bytes = bytes, .from = now});
      } else {
        const std::size_t which = random.below(alive.size());
        memory.free(block(alive[which]));
        lives[alive[which]].until = now;
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    std::uint32_t outputs = 0;
    for (const std::uint32_t number : alive) {
      lives[number].until = now + 1;
      if (random.below(2) == 0) continue;  // somebody keeps it
      lives[number].output = outputs++;
      memory.note_output(block(number), lives[number].output);
    }
    const Bytes workspace = memory.lay_out();
    const auto pieces = memory.pieces();
    ASSERT_EQ(pieces.size(), lives.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const StepRecord::Piece& a = pieces[i];
      ASSERT_EQ(a.output, lives[i].output);
      if (a.output != kNone) continue;
      ASSERT_TRUE(a.within != kNone || a.offset + a.bytes <= workspace);
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        const StepRecord::Piece& b = pieces[k];
        const bool are_at_once = lives[i].from < lives[k].until && lives[k].from < lives[i].until;
        if (k == i || !are_at_once) continue;
        if (b.output != kNone) {
          ASSERT_NE(a.within, b.output);
        } else if (a.within == b.within) {
          ASSERT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
        }
      }
      for (std::size_t k = 0; k < pieces.size() && a.within != kNone; ++k) {
        ASSERT_TRUE(pieces[k].output != a.within || a.offset + a.bytes <= pieces[k].bytes);
      }
    }
  });
}

}  // namespace
}  // namespace coop
