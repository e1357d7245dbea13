#pragma once

// What is known of an operator before any of its calls: one entry per operator, built from its schema
// and its tags when it is first seen. What depends on the call (which arguments share memory, whether
// an output is new or a view) is looked at in the call: schemas do not always tell the truth.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include "plugin/raw_readers.hpp"
#include "plugin/taint.hpp"

namespace coop::plugin {

struct OperatorFacts {
  enum class Kind : std::uint8_t {
    kOrdinary,   // an ATen operator that reads, writes, makes
    kView,       // changes what a tensor looks at; reads and writes no contents
    kComposite,  // made of others, which we see one by one
    kUnknown,    // not ATen's: it may do anything with its arguments
    kOurs,       // coop's own, and the profiler's, which are no more the program's
  };
  Kind kind = Kind::kUnknown;
  // May be run again, for what it makes or changes. Deny by default: factories (their memory may be
  // filled by code that we do not see), dynamic shapes, `out=`, and what is known not to repeat are not.
  bool is_replayable = false;
  Taint taint = Taint::kUnknownOperator;  // why not
  bool is_registered = false;             // by the program: its body is taken at its word
  bool is_random = false;                 // may draw numbers: its generator's state is kept
  bool has_template = false;    // of its first tensor only shape and type matter (`zeros_like`)
  bool is_overwriting = false;  // what it writes does not depend on what was there (`bernoulli_`)
  bool is_buffer = false;       // its output is a buffer of compiled code, written out of our sight
  bool may_be_light = false;    // light_call.hpp
  bool may_be_unheard = false;  // at ease (ease.hpp)
  bool only_makes = false;      // writes nothing, draws no numbers: it can be begun anew
  bool is_copy = false;         // makes nothing but copies (`clone`, `cat`)
  bool multiplies_matrices = false;  // Device::settle_workspace
  std::vector<bool> writes;          // by argument
  std::uint32_t arguments = 0;
  std::uint32_t results = 0;
  const RawReader* raw_reader = nullptr;  // if it is one of those

  // Arguments that it writes besides, as a side effect of which its results are independent, if the
  // flag argument is true: batch norm's running statistics. A replay leaves them out.
  static constexpr std::size_t kNone = 0xFFFF;
  std::array<std::size_t, 2> side_effects = {kNone, kNone};
  std::size_t side_effects_if = kNone;

  // Nanoseconds that it took last time: where its outputs are best placed is asked before it has run.
  mutable std::atomic<double> last_cost = 0;

  [[nodiscard]] bool is_side_effect(std::size_t argument) const {
    return argument == side_effects[0] || argument == side_effects[1];
  }
};

// Good for as long as the process lives.
const OperatorFacts& facts_of(const c10::OperatorHandle& op);

}  // namespace coop::plugin
