#pragma once

// The memory that a call takes while it runs, piece by piece, and where the pieces can lie.
//
// Note [Memory within a call]
//
// A convolution on a CPU copies its input into another layout, makes its result in that layout, and copies it once
// more: beside the outputs there is memory that is given back before the call ends, often as large as they are. A plan
// has a place for every output and one for all the rest, the workspace. Within that, every piece lies at the lowest
// offset that is free while it is there; what is given back before an output is asked for lies where the output will.
//
//     a     [-----]                 in the place of out
//     b        [---------]          in the workspace
//     out            [------------>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.hpp"
#include "core/plan/step_record.hpp"
#include "core/pool/pool.hpp"

namespace coop {

class CallMemory {
 public:
  void begin() noexcept;
  void allocate(BlockId block, Bytes bytes, bool is_small) noexcept;
  void free(BlockId block) noexcept;

  // The call is over, and this is the memory of its output of that number.
  void note_output(BlockId block, std::uint32_t output) noexcept;
  // After that: bytes beside the outputs, all in all.
  [[nodiscard]] Bytes lay_out() noexcept;
  // Then: in order, without those that are small. None if there are too many.
  [[nodiscard]] std::span<const StepRecord::Piece> pieces() const {
    return {pieces_.data(), pieces_count_};
  }

 private:
  static constexpr std::uint32_t kNone = StepRecord::kNone;
  static constexpr std::size_t kMost = 32;
  struct Taken {
    BlockId block;
    Bytes bytes = 0;
    bool is_small = false;
    std::uint32_t until = kNone;   // so many had been taken when it was given back
    std::uint32_t output = kNone;  // whose memory it is
    std::uint32_t within = kNone;  // which of these it lies in; none: the workspace
    Bytes offset = 0;
  };

  [[nodiscard]] Bytes lowest(std::uint32_t number, std::uint32_t within) const noexcept;

  std::array<Taken, kMost> taken_;
  std::uint32_t count_ = 0;
  bool are_too_many_ = false;
  Bytes held_ = 0;
  Bytes most_ = 0;
  Bytes outputs_ = 0;
  std::array<StepRecord::Piece, kMost> pieces_;
  std::size_t pieces_count_ = 0;
};

}  // namespace coop
