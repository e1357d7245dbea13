#pragma once

// Why something that an operator made cannot be made again, and so is never evicted. Deny by default:
// whatever has none of these reasons against it may go. Bytes are counted by reason, so that hiding
// behind them shows.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coop::plugin {

enum class Taint : std::uint8_t {
  kNone,
  kFactory,          // memory that code out of our sight may be about to fill
  kUnknownOperator,  // not ATen's, and not registered
  kOutOfSight,       // handled by a transform, or inside an operator that is unknown
  kDynamicShape,     // its shape depends on contents
  kDoesNotRepeat,   // known to make something else the next time, or to write what it does not name
  kOut,             // `out=`
  kChangesStorage,  // `resize_`, `set_`
  kStrangeTensor,   // among arguments or results: sparse, quantized, a subclass
  kGradient,        // being accumulated: there to stay
  kForeignMemory,   // it reads memory that numpy, a file or another process has a hand in
  kUntrustedInput,  // it reads memory whose address somebody has, or that was in unknown hands
  kWrittenSource,   // it changed what cannot be made again, and so lost it
  kUnseenMaker,     // no operator that we saw made it
  kReadUnseen,      // a copy for code that reads it without an operator
  kSmall,           // of no use to evict
};
inline constexpr std::array<std::string_view, 16> kTaintNames = {
    "none",
    "factory",
    "unknown operator",
    "out of sight",
    "dynamic shape",
    "does not repeat",
    "out=",
    "changes storage",
    "strange tensor",
    "accumulated gradient",
    "foreign memory",
    "untrusted input",
    "written source",
    "unseen maker",
    "read unseen",
    "small",
};

// Counted by whoever runs an operator, on any thread.
class MadeBytes {
 public:
  void add(Taint taint, std::size_t bytes) noexcept {
    by_taint_[static_cast<std::size_t>(taint)].fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t of(std::size_t taint) const {
    return by_taint_[taint].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kTaintNames.size()> by_taint_ = {};
};

}  // namespace coop::plugin
