#pragma once

// What happened in the last step of a run, for reports: every block with what it was for, what filled memory when,
// and which operators ran again.
//
//     StepStory story(trace);
//     simulate(trace, {.engine = {.observer = &story}});
//     story.finish();
//     for (const StoryBlock& block : story.blocks()) show(block);
//
// The last step is the one that counts: the first ones may still be filling the memory. Times are from its beginning.

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/engine/observer.hpp"
#include "sim/simulator/block_history.hpp"
#include "sim/trace/trace.hpp"

namespace coop::cli {

// What a block is for, as people see it. The first three are known where the recording has names.
enum class Filling : std::uint8_t {
  kParameter,    // and buffers
  kGradient,     // accumulated
  kState,        // an optimizer's
  kFromOutside,  // or from before the step
  kLasting,      // made in the step, and cannot be computed again
  kComputed,
  kAgain,
  kWorkspace,
};
inline constexpr std::size_t kFillings = 8;
[[nodiscard]] const char* describe(Filling filling);

// An operator of a module: numbers of the trace's names.
struct Place {
  sim::NameNumber op = sim::kNoName;
  sim::NameNumber module = sim::kNoName;
  friend bool operator==(const Place&, const Place&) = default;
  friend bool operator<(const Place& a, const Place& b) noexcept {
    return std::tie(a.op, a.module) < std::tie(b.op, b.module);
  }
};

struct StoryBlock {
  double begin_ns = 0;  // 0: or before
  double end_ns = 0;
  std::uint64_t begin_event = 0;  // as BlockSpan's
  std::uint64_t end_event = 0;
  Bytes offset = 0;
  Bytes bytes = 0;
  Filling filling = Filling::kWorkspace;
  Token storage = 0;                    // as BlockSpan's
  Place made_by;                        // nothing: it comes from outside
  sim::NameNumber name = sim::kNoName;  // of its storage
  std::uint32_t times_again = 0;        // that its storage was computed again, in this step
  bool is_evicted = false;
  Place evicted_for;
  Bytes evicted_for_bytes = 0;
  double return_ns = 0;

  [[nodiscard]] double area() const { return static_cast<double>(bytes) * (end_ns - begin_ns); }
};

// A short stretch of time, at the moment in it when most is held.
struct Moment {
  double ns = 0;
  std::uint64_t event = 0;
  std::array<Bytes, kFillings> held{};
  Bytes all_held = 0;
  Bytes needed = 0;  // by the same program without a budget
};

// What ran again.
struct Repetition {
  Place place;
  std::uint64_t times = 0;
  double ns = 0;
};

class StepStory final : public EngineObserver {
 public:
  static constexpr std::size_t kMoments = 1200;

  explicit StepStory(const sim::Trace& trace);

  void on_event(const EngineEvent& event) noexcept override;
  // To be called once, when the run is over.
  void finish();

  [[nodiscard]] double length_ns() const { return length_ns_; }
  [[nodiscard]] const std::vector<StoryBlock>& blocks() const { return blocks_; }
  // As many as kMoments, over the whole step, each as long as the others.
  [[nodiscard]] const std::vector<Moment>& moments() const { return moments_; }
  // When most is held.
  [[nodiscard]] const Moment& fullest() const { return fullest_; }
  [[nodiscard]] std::vector<const StoryBlock*> blocks_at(const Moment& moment) const;
  // What ran then, or ran again.
  [[nodiscard]] Place running_at(const Moment& moment) const;
  // Each place once, the most time first.
  [[nodiscard]] const std::vector<Repetition>& repetitions() const { return repetitions_; }
  // Where remarks of the trace are.
  [[nodiscard]] const std::vector<sim::TimeMark>& remarks() const { return remarks_; }
  // Of what made a storage, and its name.
  [[nodiscard]] Place maker_of(Token storage) const;
  [[nodiscard]] sim::NameNumber name_of(Token storage) const;
  [[nodiscard]] Place place_of(Token call) const;
  [[nodiscard]] bool has_modules() const;
  [[nodiscard]] bool has_names() const;  // of any storage

 private:
  struct Ran {
    double ns = 0;  // when it was done
    double cost_ns = 0;
    Token call = 0;  // 0: what the program was run for was brought back
    std::uint64_t event = 0;
    bool is_again = false;
  };

  [[nodiscard]] double find_beginning() const;
  [[nodiscard]] Filling filling_of(const sim::BlockSpan& span) const;
  void add_blocks();
  void add_moments();
  void add_moment(Moment now, double begin, double end);
  void add_repetitions();

  const sim::Trace& trace_;
  sim::BlockHistory history_;
  std::vector<Token> makers_;  // by storage; the call's number and 1 more
  std::vector<Ran> ran_;
  double begin_ns_ = 0;
  double length_ns_ = 0;
  std::vector<StoryBlock> blocks_;
  std::vector<Moment> moments_;
  Moment fullest_;
  std::vector<Repetition> repetitions_;
  std::vector<sim::TimeMark> remarks_;
};

}  // namespace coop::cli
