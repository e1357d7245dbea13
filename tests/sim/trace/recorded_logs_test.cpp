// The logs of real networks are read as those who recorded them describe them.
#include "support/recorded_logs.hpp"

#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "sim/simulator/demand.hpp"
#include "sim/trace/dtr_log.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

struct Recorded {
  const char* name;
  std::size_t calls;
  double peak_mb;
  double base_ms;
};

void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.name; }  // NOLINT

void expect(const Trace& trace, const Recorded& recorded) {
  const Demand demand = measure_demand(trace);
  EXPECT_EQ(trace.call_count(), recorded.calls);
  EXPECT_NEAR(static_cast<double>(demand.peak_bytes) / 1e6, recorded.peak_mb, 0.05);
  EXPECT_NEAR(demand.base_ns / 1e6, recorded.base_ms, 0.05);
  EXPECT_EQ(trace, parse_trace(format_trace(trace), "x"));
}

class H200Log : public ::testing::TestWithParam<Recorded> {};

TEST_P(H200Log, IsWhatItsTableSays) {
  const auto path = testing::h200_log(GetParam().name);
  expect(read_dtr_log(path, Mutation::kInPlace), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Six, H200Log,
                         ::testing::Values(Recorded{"resnet50", 408, 10184.1, 54.6},
                                           Recorded{"bert_large", 1040, 20502.2, 139.5},
                                           Recorded{"swin_t", 970, 4534.4, 28.5},
                                           Recorded{"spos", 393, 4458.6, 33.3},
                                           Recorded{"bilstm", 8704, 3885.6, 55.8},
                                           Recorded{"gpt_2_7b", 1687, 75307.1, 437.4}),
                         [](const auto& each) { return std::string(each.param.name); });

// The peer's own peaks, from its simulator, with a mutation as a copy.
class DtrLogOfPeer : public ::testing::TestWithParam<Recorded> {};

TEST_P(DtrLogOfPeer, HasThePeersPeak) {
  const auto path = testing::dtr_log(GetParam().name);
  COOP_SKIP_WITHOUT(path);
  expect(read_dtr_log(*path, Mutation::kCopies), GetParam());
}

TEST_P(DtrLogOfPeer, NeedsLessInPlace) {
  const auto path = testing::dtr_log(GetParam().name);
  COOP_SKIP_WITHOUT(path);
  const Demand demand = measure_demand(read_dtr_log(*path, Mutation::kInPlace));
  EXPECT_LE(static_cast<double>(demand.peak_bytes) / 1e6, GetParam().peak_mb + 0.05);
  EXPECT_NEAR(demand.base_ns / 1e6, GetParam().base_ms, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Four, DtrLogOfPeer,
                         ::testing::Values(Recorded{"tv_densenet121", 2072, 11020.7, 355.3},
                                           Recorded{"resnet32", 286, 10061.2, 291.9},
                                           Recorded{"unet", 247, 8415.8, 435.3},
                                           Recorded{"lstm", 7926, 5595.1, 769.5}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace coop::sim
