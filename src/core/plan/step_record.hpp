#pragma once

// What a program did in one step, in the order in which it did it, and without what a budget did to it:
// which storages were there before, what each Call read, wrote and made, what was released when. The plan
// for the next step, which is expected to be the same, is made from it.
//
// Storages and calls are numbered from 0. A call's outputs are numbered too: first what it writes where it is,
// then what it makes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"

namespace coop {

struct StepRecord {
  struct Storage {
    Bytes bytes = 0;
    bool is_there = false;   // before the first event
    bool is_source = false;  // what it holds cannot be made again, whichever call writes it
  };
  struct Write {
    std::uint32_t storage = 0;
    bool reads_old = true;  // false: all of it is overwritten, whatever it was
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // Memory that a call takes while it runs: of something that it makes, or given back before the call ends, and then it
  // lies in the workspace, or where something will be that the call makes later.
  struct Piece {
    Bytes bytes = 0;
    std::uint32_t output = kNone;  // number among what it makes; none: given back
    std::uint32_t within = kNone;  // likewise; none: the workspace
    Bytes offset = 0;              // in there
  };
  struct Call {
    double cost = 0;      // nanoseconds
    Bytes workspace = 0;  // beside its outputs
    bool is_replayable = true;
    // Where its part of the shared arrays ends; it begins where that of the call before it ends.
    std::uint32_t reads_end = 0;
    std::uint32_t writes_end = 0;
    std::uint32_t makes_end = 0;
    std::uint32_t pieces_end = 0;
  };
  enum class Kind : std::uint8_t {
    kSource,  // a storage comes from outside
    kCall,
    kEndLineage,  // what a storage holds is not to be made again
    kRelease,     // a storage goes
  };
  struct Event {
    Kind kind = Kind::kCall;
    std::uint32_t subject = 0;  // number of the storage or of the call
  };

  std::vector<Storage> storages;
  std::vector<Call> calls;
  std::vector<Event> events;
  std::vector<std::uint32_t> reads;  // storages
  std::vector<Write> writes;
  std::vector<std::uint32_t> makes;  // storages
  // The large ones in the order in which they are taken. None of a call: first what it makes, then the workspace.
  std::vector<Piece> pieces;

  [[nodiscard]] std::span<const std::uint32_t> reads_of(std::size_t call) const {
    return part(reads, call == 0 ? 0 : calls[call - 1].reads_end, calls[call].reads_end);
  }
  [[nodiscard]] std::span<const Write> writes_of(std::size_t call) const {
    return part(writes, call == 0 ? 0 : calls[call - 1].writes_end, calls[call].writes_end);
  }
  [[nodiscard]] std::span<const std::uint32_t> made_by(std::size_t call) const {
    return part(makes, call == 0 ? 0 : calls[call - 1].makes_end, calls[call].makes_end);
  }
  [[nodiscard]] std::span<const Piece> pieces_of(std::size_t call) const {
    return part(pieces, call == 0 ? 0 : calls[call - 1].pieces_end, calls[call].pieces_end);
  }

 private:
  template <typename T>
  static std::span<const T> part(const std::vector<T>& all, std::size_t begin, std::size_t end) {
    return {all.data() + begin, end - begin};
  }
};

}  // namespace coop
