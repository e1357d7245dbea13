#include "sim/generators/generators.hpp"

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {

void PrintTo(const Generator& generator, std::ostream* out) { *out << generator.name; }  // NOLINT

namespace {

class EveryGenerator : public ::testing::TestWithParam<Generator> {
 protected:
  [[nodiscard]] static Trace make(const GeneratorOptions& options) {
    return GetParam().generate(options);
  }
};

// FNV-1a: if the text differs by a byte, so does this.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

TEST_P(EveryGenerator, GivesTheSameTraceEverywhere) {
  // Written down from g++ 12 and clang 14. They change with the generators, and with nothing else.
  const std::map<std::string_view, std::uint64_t> known{{"chain", 0xa804667de319275e},
                                                        {"residual", 0x3c9c7f274cb25ead},
                                                        {"transformer", 0x240e63742253dffa},
                                                        {"lstm", 0x9aa46dffad05775e},
                                                        {"tree", 0xe0176f0f2bf04d14},
                                                        {"random-path", 0x930bb4fe1877932a},
                                                        {"variable-length", 0x4f2632765556235a},
                                                        {"evaluation", 0xbff182aec4a638d0}};
  EXPECT_EQ(hash(format_trace(make({.seed = 7}))), known.at(GetParam().name));
}

TEST_P(EveryGenerator, FollowsItsOptions) {
  const Trace trace = make({.seed = 3, .steps = 4});
  EXPECT_EQ(trace.step_count(), 4U);
  EXPECT_NE(trace, make({.seed = 4, .steps = 4}));
  const std::size_t few = make({.seed = 3, .layers = 4}).call_count();
  const std::size_t many = make({.seed = 3, .layers = 40}).call_count();
  EXPECT_GT(many, 3 * few);
}

TEST_P(EveryGenerator, LooksLikeTraining) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = make({.seed = seed, .steps = 2});
    std::size_t in_place = 0;
    std::size_t on_sources = 0;
    std::vector<bool> is_alive(trace.storages().size());
    for (const TraceEvent& event : trace.events()) {
      if (event.kind == EventKind::kSource) is_alive[event.subject] = true;
      if (event.kind == EventKind::kRelease) is_alive[event.subject] = false;
      if (event.kind != EventKind::kCall) continue;
      const TraceCall call = trace.call(event.call());
      for (std::uint32_t i = 0; i < call.outputs; ++i) is_alive[index_of(call.output(i))] = true;
      for (const TraceWrite& write : call.writes) {
        ++in_place;
        if (!trace.storage(write.storage).is_output) ++on_sources;
      }
    }
    EXPECT_GT(on_sources, 0U) << "parameters are updated in place";
    EXPECT_GE(in_place, on_sources);
    // Parameters outlive the program; nothing else leaks.
    for (std::size_t i = 0; i < is_alive.size(); ++i) {
      EXPECT_FALSE(is_alive[i] && trace.storages()[i].is_output) << "storage " << i;
    }
    const Demand demand = measure_demand(trace);
    EXPECT_GT(demand.peak_bytes, 50_MiB);
    EXPECT_LT(demand.peak_bytes, 40_GiB);
    EXPECT_GT(demand.base_ns, 1e6);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryGenerator, ::testing::ValuesIn(known_generators()),
                         [](const auto& each) {
                           std::string name(each.param.name);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Generators, RefuseWhatTheyDoNotKnow) {
  EXPECT_THROW(generate("perceptron", {}), InvalidArgument);
  EXPECT_THROW(generate("chain", {.steps = 0}), InvalidArgument);
  EXPECT_THROW(generate("chain", {.layers = 1'000'000}), InvalidArgument);
  try {
    generate("perceptron", {});
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("there are chain, residual"), std::string::npos);
  }
}

}  // namespace
}  // namespace coop::sim
