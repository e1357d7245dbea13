#include "core/engine/call_memory.hpp"

#include <algorithm>

#include "core/pool/grain.hpp"

namespace coop {

void CallMemory::begin() noexcept {
  count_ = 0;
  are_too_many_ = false;
  held_ = most_ = outputs_ = 0;
  pieces_count_ = 0;
}

void CallMemory::allocate(BlockId block, Bytes bytes, bool is_small) noexcept {
  bytes = to_bytes(to_grains(bytes));  // so that every offset is one of a block
  held_ += bytes;
  most_ = std::max(most_, held_);
  are_too_many_ = are_too_many_ || count_ == kMost;
  if (!are_too_many_) taken_[count_++] = {.block = block, .bytes = bytes, .is_small = is_small};
}

// Others are given back too while the call runs: those that went out of use.
void CallMemory::free(BlockId block) noexcept {
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (taken_[i].block != block || taken_[i].until != kNone) continue;
    taken_[i].until = count_;
    held_ -= taken_[i].bytes;
  }
}

void CallMemory::note_output(BlockId block, std::uint32_t output) noexcept {
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (taken_[i].block != block || taken_[i].until != kNone) continue;
    taken_[i].output = output;
    outputs_ += taken_[i].bytes;
  }
}

Bytes CallMemory::lay_out() noexcept {
  pieces_count_ = 0;
  if (are_too_many_) return most_ - std::min(most_, outputs_);
  Bytes workspace = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    Taken& piece = taken_[i];
    piece.within = kNone;
    if (piece.output == kNone) {
      // An output's memory that is taken later, and has room until then.
      for (std::uint32_t k = i + 1; k < count_ && piece.within == kNone; ++k) {
        const Taken& later = taken_[k];
        if (later.output == kNone || later.is_small || piece.until > k) continue;
        piece.offset = lowest(i, k);
        if (piece.offset + piece.bytes <= later.bytes) piece.within = k;
      }
      if (piece.within == kNone) {
        piece.offset = lowest(i, kNone);
        workspace = std::max(workspace, piece.offset + piece.bytes);
      }
    }
    if (piece.is_small) continue;
    pieces_[pieces_count_++] = {
        .bytes = piece.bytes,
        .output = piece.output,
        .within = piece.within == kNone ? kNone : taken_[piece.within].output,
        .offset = piece.offset};
  }
  return workspace;
}

// In the workspace or an output, beside those that lie there at the same time: they have been taken before.
Bytes CallMemory::lowest(std::uint32_t number, std::uint32_t within) const noexcept {
  const auto is_in_the_way = [&](std::uint32_t i, Bytes offset) {
    const Taken& other = taken_[i];
    return other.output == kNone && other.within == within && other.until > number &&
           other.offset < offset + taken_[number].bytes && offset < other.offset + other.bytes;
  };
  Bytes offset = 0;
  for (std::uint32_t i = 0; i < number;) {
    if (is_in_the_way(i, offset)) {
      offset = taken_[i].offset + taken_[i].bytes;
      i = 0;
    } else {
      ++i;
    }
  }
  return offset;
}

}  // namespace coop
