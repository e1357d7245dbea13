#pragma once

// Random tests that can be repeated. Each case has a number, which is its seed; a failure prints
// it, and
//     COOP_TEST_SEED=17 <test program> --gtest_filter=...
// runs that case alone with tracing on.
//     COOP_TEST_FIRST_SEED=100000 <test program> --gtest_filter=...
// begins with that case, where others have tried those before.

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/base/check.hpp"
#include "core/base/split_mix.hpp"

namespace coop::testing {

class Random : public SplitMix {
 public:
  using SplitMix::SplitMix;
  // In [0, n).
  std::uint64_t below(std::uint64_t n) {
    COOP_CHECK(n > 0);
    return next() % n;
  }
  // In [low, high].
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }
};

inline std::optional<std::uint64_t> wanted_seed() {
  const char* text = std::getenv("COOP_TEST_SEED");
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

inline std::uint64_t first_seed() {
  const char* text = std::getenv("COOP_TEST_FIRST_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

inline bool is_full_scale() {
  const char* text = std::getenv("COOP_TEST_SCALE");
  return text != nullptr && std::string(text) == "full";
}

// A property is tried on `cases` cases in a release build, ten times as many at full scale, and on
// a twentieth where full checks or a sanitizer make every case that much slower.
inline std::uint64_t scaled(std::uint64_t cases) {
  if (is_full_scale()) cases *= 10;
  if (kFullChecks) cases = std::max<std::uint64_t>(cases / 20, 1);
  return cases;
}

struct Case {
  std::uint64_t seed = 0;
  bool is_traced = false;
  Random random;
  explicit Case(std::uint64_t number, bool traced)
      : seed(number), is_traced(traced), random(number * 0x9E3779B9 + 1) {}

  [[gnu::format(printf, 2, 3)]] void trace(const char* format, ...) const {
    if (!is_traced) return;
    std::va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
  }
};

// The case that runs, for a program that ends before it can say so.
inline std::uint64_t current_seed =
    0;  // NOLINT(readability-identifier-naming): a test's own global

[[noreturn]] inline void name_seed_and_abort() {
  std::printf("ended by seed %llu; run it again with COOP_TEST_SEED=%llu\n",
              static_cast<unsigned long long>(current_seed),
              static_cast<unsigned long long>(current_seed));
  std::fflush(stdout);
  std::abort();
}

// Runs body(Case&) until one fails. Returns how many were run.
template <typename Body>
std::uint64_t for_each_case(std::uint64_t cases, const Body& body) {
  if (const auto seed = wanted_seed()) {
    Case one(*seed, true);
    body(one);
    return 1;
  }
  std::set_terminate(name_seed_and_abort);
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    current_seed = seed;
    Case one(seed, false);
    try {
      body(one);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "threw " << error.what();
    }
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "failed with seed " << seed << "; run it again with COOP_TEST_SEED=" << seed;
      return seed - first + 1;
    }
  }
  return cases;
}

}  // namespace coop::testing
