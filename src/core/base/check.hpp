#pragma once

// Invariant checks in three tiers, chosen at build time by COOP_CHECK_LEVEL (CMake: COOP_CHECKS):
//   0 off     release benchmarks
//   1 cheap   O(1) conditions, COOP_CHECK; the default
//   2 full    validation of the whole structure after every allocation, free and move as well
// A failed check is a bug in coop, never the caller's fault: it throws InternalError; in a function
// that must not throw it ends the program. The validate() functions check nothing in tier 0.

#ifndef COOP_CHECK_LEVEL
#define COOP_CHECK_LEVEL 1
#endif

namespace coop {

inline constexpr bool kFullChecks = COOP_CHECK_LEVEL >= 2;

[[noreturn]] void fail_check(const char* condition, const char* file, int line);

}  // namespace coop

// A macro because only a macro can name the condition that failed.
#define COOP_CHECK(condition)                               \
  do {                                                      \
    if (COOP_CHECK_LEVEL >= 1 && !(condition)) [[unlikely]] \
      ::coop::fail_check(#condition, __FILE__, __LINE__);   \
  } while (false)
