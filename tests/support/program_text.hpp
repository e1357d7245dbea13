#pragma once

// A program for the hash world, written down before it runs, so that the same one can be run under
// many budgets and policies.
//
// It speaks of tensors by names. Several names may be of one storage: views. A name whose making
// failed for want of memory is nobody's, and whatever uses it later does not happen.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "core/base/bytes.hpp"
#include "support/hash_world.hpp"

namespace coop::testing {

using Name = int;
inline constexpr Name kNobody = -1;

// What an operator writes.
struct Target {
  Name name = kNobody;
  bool reads_old = true;
};

// What it makes.
struct Product {
  Name name = kNobody;
  Bytes bytes = 0;            // may be 0
  bool is_repeatable = true;  // comes out the same when the operator is run again
};

struct Event {  // NOLINT(misc-no-recursion): operators inside operators
  enum class Kind : std::uint8_t {
    kSource,
    kOperator,
    kView,
    kRelease,
    kCheck,
    kExport,
    kEvictAll
  };
  Kind kind = Kind::kOperator;
  Name name = kNobody;  // what is made, released, checked or exported
  Name of = kNobody;    // what a view is of
  Bytes bytes = 0;      // of a source
  Content salt = 0;     // a source's contents, an operator's attributes,
                        // what is written where a storage was exported (0: nothing)

  // Of an operator.
  std::vector<Name> reads;
  std::vector<Target> writes;
  std::vector<Product> makes;
  Name effect = kNobody;   // changed besides, but not by a replay
  Name resizes = kNobody;  // its storage becomes what the operator makes
  Bytes workspace = 0;
  double cost = 1;
  bool is_random = false;
  bool is_replayable = true;
  bool fails = false;
  int repeats = 1;
  std::vector<Event> inside;  // operators that run when it has done its work and has not ended yet
};

using ProgramText = std::vector<Event>;

inline void print_line(const Event& event) {
  constexpr std::array kKinds{"source", "operator", "view",     "release",
                              "check",  "export",   "evict all"};
  std::printf("%s", kKinds[static_cast<std::size_t>(event.kind)]);
  const auto grains = [](Bytes bytes) { return static_cast<int>(bytes / kGrainBytes); };
  if (event.name != kNobody) std::printf(" %d", event.name);
  if (event.of != kNobody) std::printf(" of %d", event.of);
  if (event.bytes > 0) std::printf(", %d grains", grains(event.bytes));
  for (const Name name : event.reads) std::printf(" reads %d", name);
  for (const Target& target : event.writes) {
    std::printf(" %s %d", target.reads_old ? "changes" : "overwrites", target.name);
  }
  for (const Product& product : event.makes) {
    std::printf(" makes %d (%d grains%s)", product.name, grains(product.bytes),
                product.is_repeatable ? "" : ", unrepeatable");
  }
  if (event.effect != kNobody) std::printf(" touches %d", event.effect);
  if (event.resizes != kNobody) std::printf(" resizes %d", event.resizes);
  if (event.workspace > 0) std::printf(" needs %d grains", grains(event.workspace));
  std::printf("%s%s%s", event.is_random ? " (random)" : "",
              event.is_replayable ? "" : " (not replayable)", event.fails ? " (fails)" : "");
  if (event.repeats > 1) std::printf(" %d times", event.repeats);
  std::printf("\n");
}

inline void print(const Event& event) {
  print_line(event);
  for (const Event& inner : event.inside) {
    std::printf("  inside: ");
    print_line(inner);
  }
}

}  // namespace coop::testing
