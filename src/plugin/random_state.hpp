#pragma once

// Where a generator stands. Taken before an operator that may draw numbers, put back for its replay.

#include <mutex>
#include <optional>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

namespace coop::plugin {

class RandomState {
 public:
  // Without a tensor, which Generator::get_state would make: that is memory, and ours is short.
  static RandomState of(const at::Generator& generator);
  // Whether the generator has been used since.
  [[nodiscard]] bool has_moved() const;
  [[nodiscard]] const at::Generator& generator() const { return generator_; }

 private:
  friend class RandomStateGuard;
  explicit RandomState(at::Generator generator) : generator_(std::move(generator)) {}

  // The CPU's: a Mersenne twister, and what is left of a pair of normal numbers.
  struct Twister {
    at::mt19937_data_pod engine{};
    std::optional<float> next_float;
    std::optional<double> next_double;
  };
  static Twister twister_of(const at::Generator& generator);
  // A GPU's counts.
  struct Counter {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
    friend bool operator==(const Counter&, const Counter&) = default;
  };

  at::Generator generator_;
  std::optional<Twister> twister_;
  Counter counter_;
};

// Note [One draws at a time]
//
// A replay puts a generator where it stood then. Whoever drew from it at that moment, on another thread, would get the
// numbers of then, and leave it somewhere else; and a state that is taken before an operator is of no use if another
// thread draws before the operator does. So whoever draws, for the first time or again, has the others wait: from
// before the state is taken until the operator has run. Nobody waits for a replay meanwhile: a replay has no lock
// of the engine's, what an operator may ask of the engine while it runs is memory, which never waits for one, and who
// makes room for a second try gives its turn away. There is one turn for all budgets: a generator need not be its
// device's alone.
class TurnToDraw {
 public:
  // Nobody's, where nothing is drawn.
  explicit TurnToDraw(bool draws = false) {
    if (draws) take();  // most operators draw nothing
  }
  void end() noexcept { lock_ = {}; }

 private:
  void take();

  // Recursive: memory for an operator that draws may be found by running others again.
  std::unique_lock<std::recursive_mutex> lock_;
};

// The state of then while it lives, the state of now afterwards.
class RandomStateGuard {
 public:
  explicit RandomStateGuard(const RandomState& then);
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;
  ~RandomStateGuard();

 private:
  static void put(at::Generator& generator, const RandomState::Twister& twister);

  at::Generator generator_;
  std::optional<RandomState::Twister> twister_;  // of now, the CPU's
  at::Generator counter_;                        // of now, a GPU's
};

}  // namespace coop::plugin
