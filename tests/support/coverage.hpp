#pragma once

// What random programs have come by: every row of "Replaying a Call" and every case of "Cases that
// look harmless" of the notes on lineage, as far as there is one without PyTorch.
//
// Left to the tests of the plugin, because the engine knows nothing of it:
//   - the ambience of a run (grad mode, flags, thread count), which the world records and restores;
//   - views: their sizes, strides and flags are the world's. Here, views are names of a storage;
//   - an optional output that is undefined on replay: the engine is handed as many outputs as the
//     first run recorded, or an exception;
//   - a 0-dim CPU tensor in a CUDA op: what is in no pool is unknown to the engine, as what has no
//     bytes;
//   - double backward: to the engine, Calls like any other that read what a backward made.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace coop::testing {

// clang-format off
#define COOP_SEEN_LIST(X)                                                                          \
  /* Replaying a Call */                                                                           \
  X(kAttached, "fresh output: attached to its storage")                                            \
  X(kScratch, "fresh output: scratch for a past Value")                                            \
  X(kDropped, "fresh output: dropped, nobody wants it")                                            \
  X(kMutated, "changes a recomputable Value: replayed in scratch")                                 \
  X(kMutatedAfterReader, "changes a Value that was read before in the same schedule")              \
  X(kOverwrittenWhole, "overwrites a whole storage without reading it: replayed")                  \
  X(kOverwrittenEvicted, "overwrites a whole storage that is evicted: no replay")                  \
  X(kEffectLeftOut, "changes a Source besides: replayed without that effect")                      \
  X(kEffectGivesSources, "changes a Source besides: what it makes are Sources")                    \
  X(kRandom, "random: replayed with the state of then")                                            \
  X(kNeverReplayed, "may not be run again: what it makes are Sources")                             \
  X(kUnrepeatableOutput, "one output cannot be made again, others can: replayed")                  \
  X(kReplanned, "a Call that ran twice in one schedule")                                           \
  /* Writing a Source */                                                                           \
  X(kSourceWritten, "a Source is written that others are made from")                               \
  X(kSourceWrittenThroughPast, "... that a current Value is made from through past ones")          \
  X(kSeveralSourcesWritten, "several such Sources are written at once")                            \
  /* Cases that look harmless */                                                                   \
  X(kReaderOfChanged, "y = f(x); x.relu_(): both evicted")                                         \
  X(kLoopOfThousand, "x += 1 in a loop of a thousand, brought back")                               \
  X(kViewBeforeWrite, "a = x[0]; x.add_(1); use(a): evicted")                                      \
  X(kBufferEachStep, "buf.copy_(x) each step")                                                     \
  X(kOnlyViewAlive, "a storage of which only a view is alive: evicted, read")                      \
  X(kInputTwice, "the same storage as input twice: replayed")                                      \
  X(kInputAndChanged, "the same storage as input and changed: replayed")                           \
  X(kInputAndOverwritten, "the same storage as input and overwritten: replayed")                   \
  X(kAliased, "an output that is its input this time")                                             \
  X(kOneOutputDead, "two outputs of which one is dead: replayed")                                  \
  X(kResized, "resize_ of an output: replayed")                                                    \
  X(kZeroBytes, "an output of zero bytes beside others: replayed")                                 \
  X(kWorkspace, "an op that allocates inside: replayed")                                           \
  X(kUsedUpdatedUsed, "a parameter used, updated and used again")                                  \
  X(kTied, "weights tied: a Source with several readers is written")                               \
  X(kHookWrites, "a hook writes what the running op reads or writes")                              \
  X(kCarried, "a value carried over steps, its batches gone: evicted, read")                       \
  X(kOperatorFailed, "an op that fails half-way")                                                  \
  X(kExportedRead, "an exported storage is read by a replay")                                      \
  X(kExportedWritten, "an exported storage is written by whoever has the address")
// clang-format on

enum class Seen : std::uint8_t {
#define COOP_SEEN_ENUM(name, text) name,
  COOP_SEEN_LIST(COOP_SEEN_ENUM)
#undef COOP_SEEN_ENUM
};

struct Coverage {
  static constexpr std::array kTexts{
#define COOP_SEEN_TEXT(name, text) text,
      COOP_SEEN_LIST(COOP_SEEN_TEXT)
#undef COOP_SEEN_TEXT
  };

  void note(Seen what) { ++counts[static_cast<std::size_t>(what)]; }
  void note_if(bool condition, Seen what) {
    if (condition) note(what);
  }
  void print() const {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::printf("  %10llu  %s\n", static_cast<unsigned long long>(counts[i]), kTexts[i]);
    }
  }

  std::array<std::uint64_t, kTexts.size()> counts{};
};

}  // namespace coop::testing
