#pragma once

// Who held which addresses when: every block of a run from its beginning to its end, for maps.
//
//     BlockHistory history(trace);
//     simulate(trace, {.budget = budget, .engine = {.observer = &history}});
//     for (const BlockSpan& span : history.spans()) draw(span);
//
// Time is the engine's: what operators have cost so far, recomputation included. Operators take their
// memory before their time passes, so that outputs and workspaces cover the time of their operator.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/engine/observer.hpp"
#include "sim/trace/trace.hpp"

namespace coop::sim {

enum class BlockUse : std::uint8_t {
  kSource,      // comes from outside, or can no longer be made again
  kActivation,  // made by an operator that the program ran
  kRecomputed,  // made again
  kWorkspace,   // needed only while an operator ran
};
inline constexpr std::size_t kBlockUses = 4;

// A block at one place, used for one thing. A block that moves or changes its use becomes two.
struct BlockSpan {
  double begin_ns = 0;
  double end_ns = 0;
  Bytes offset = 0;
  Bytes bytes = 0;
  BlockUse use = BlockUse::kWorkspace;
  bool ends_evicted = false;
  // Of the storage whose contents it had: its number and 1 more; 0: nobody's, or of a past version.
  Token storage = 0;
  // Which of the engine's events it was there for: from the first on, up to the other. While an operator runs no time
  // passes between them.
  std::uint64_t begin_event = 0;
  std::uint64_t end_event = 0;
  // Of the call that it was taken for, or of the next one if it was for none: its number and 1 more.
  Token call = 0;
  // If it was evicted: for which call, for how many bytes (0: ahead, that call asked for none), and what it would have
  // cost to bring it back at once.
  Token evicted_for = 0;
  Bytes evicted_for_bytes = 0;
  double return_ns = 0;
};

// Where a step begins, or a remark of the trace.
struct TimeMark {
  double ns = 0;
  bool is_step = false;
  NameNumber text = kNoName;  // of a remark
};

class BlockHistory final : public EngineObserver {
 public:
  explicit BlockHistory(const Trace& trace);

  void on_event(const EngineEvent& event) noexcept override;

  // Blocks that are still held end now. To be called once, when the run is over.
  void finish();

  // In the order in which they end.
  [[nodiscard]] const std::vector<BlockSpan>& spans() const { return spans_; }
  [[nodiscard]] const std::vector<TimeMark>& marks() const { return marks_; }
  [[nodiscard]] double end_ns() const { return now_; }
  [[nodiscard]] std::uint64_t event_count() const { return events_; }

 private:
  struct OpenBlock {
    BlockSpan span;
    std::uint64_t calls_before = 0;  // that had been run when it was allocated
    bool is_placed = false;
  };

  void begin(const EngineEvent& event);
  void place(const EngineEvent& event);
  void evict(const EngineEvent& event);
  void turn_into_source(const EngineEvent& event);
  void move(const EngineEvent& event);
  void end(const EngineEvent& event);
  void end_call(const EngineEvent& event, bool is_replay);
  // From now on it is another span.
  void split(OpenBlock& open);

  struct MarkBeforeCall {
    CallNumber call{};
    TimeMark mark;  // its time is that of the call
  };
  std::vector<MarkBeforeCall> marks_to_come_;          // by call
  std::unordered_map<std::uint32_t, OpenBlock> open_;  // by the block's index
  std::vector<BlockSpan> ending_with_call_;            // workspaces of the operator that runs
  std::vector<std::uint32_t> taken_for_call_;          // blocks of the operator that runs
  std::vector<std::size_t> evicted_for_call_;          // spans that it ended
  std::vector<BlockSpan> spans_;
  std::vector<TimeMark> marks_;
  double now_ = 0;
  const Bytes small_limit_;  // requests up to this have an area of their own, and evict nothing
  std::uint64_t calls_ = 0;
  std::uint64_t events_ = 0;
  bool was_replay_ = false;  // the last of them
};

}  // namespace coop::sim
