#pragma once

// An operator's run looked at from outside, before anyone relies on it: is what we know of it true?
//
//     Audit audit(uses)          before it runs: its arguments' contents are copied
//     ... it runs ...
//     look(...)                  what it wrote, what it shares, whether it drew numbers
//     run_again(...)             the record of it, over those copies: bit for bit the same?
//
// Nothing is evicted meanwhile, so a finding costs nobody a tensor. For programs of one thread: what
// others write at that moment looks like the operator's doing.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/StorageImpl.h>

#include "plugin/random_state.hpp"
#include "plugin/recorded_call.hpp"

namespace coop::plugin {

class Audit {
 public:
  // A storage that the operator uses, in the order of `uses`.
  struct Use {
    c10::StorageImpl* impl = nullptr;
    bool is_written = false;   // as far as we know
    bool is_left_out = false;  // of a replay: batch norm's statistics
    bool is_input = false;     // of the engine's Call; if not, one of the overwritten
    std::size_t number = 0;    // among those
  };
  explicit Audit(std::vector<Use> uses);

  // After it has run. `results`: storages that are no argument's. Each finding is a sentence about the
  // operator.
  void look(std::span<c10::StorageImpl* const> results, bool is_random);
  // `made`: like the outputs of the record.
  void run_again(const RecordedCall& call, std::span<c10::StorageImpl* const> made);
  [[nodiscard]] const std::vector<std::string>& findings() const { return findings_; }

 private:
  struct Copy {
    c10::DataPtr data;
    std::size_t bytes = 0;
  };
  void compare_written();
  void compare_made(const RecordedCall& call, const torch::jit::Stack& results,
                    std::span<c10::StorageImpl* const> made);

  std::vector<Use> uses_;
  std::vector<Copy> copies_;
  RandomState random_;
  std::vector<std::string> findings_;
};

// Of all operators of a session, each once.
class Findings {
 public:
  void add(const c10::OperatorHandle& op, const std::vector<std::string>& findings);
  // A line for each; empty if there are none. Then they are forgotten.
  [[nodiscard]] std::string take();

 private:
  std::mutex mutex_;
  std::set<std::string> texts_;
};

}  // namespace coop::plugin
