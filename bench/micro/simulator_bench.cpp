// Whole simulations, by the call: the budget does not bind, so this is what recording costs. And what it costs
// to read a trace.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/dtr_log.hpp"
#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_file.hpp"
#include "support/recorded_logs.hpp"

namespace coop::sim {
namespace {

// Generated networks, the logs in the repository, and the DTR prototype's where they are.
struct Subject {
  std::string name;
  std::optional<std::filesystem::path> log;  // none: generated

  [[nodiscard]] Trace trace() const {
    return log ? read_dtr_log(*log, Mutation::kInPlace) : generate(name, {.seed = 1, .steps = 1});
  }
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects = [] {
    std::vector<Subject> all;
    for (const char* name : {"chain", "residual", "transformer", "lstm"}) all.push_back({name});
    for (const char* name : {"resnet50", "bert_large", "swin_t", "spos", "bilstm", "gpt_2_7b"}) {
      all.push_back({name, testing::h200_log(name)});
    }
    for (const char* name : {"tv_densenet121-84", "resnet32-56", "unet-6", "lstm-128"}) {
      if (const auto log = testing::dtr_log(name)) all.push_back({name, log});
    }
    return all;
  }();
  return kSubjects;
}

const Subject& subject_of(const benchmark::State& state) {
  return subjects()[static_cast<std::size_t>(state.range(0))];
}

void count_calls(benchmark::State& state, std::size_t calls) {
  state.SetLabel(subject_of(state).name);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(calls));
  state.counters["calls"] = static_cast<double>(calls);
}

// A process that has run a large trace keeps its memory for the next. Without this a small one, run again and
// again, would measure how fast the kernel takes pages back and hands them out.
void keep_memory() {
  constexpr int kBytes = 256 << 20;
  mallopt(M_TRIM_THRESHOLD, kBytes);
  mallopt(M_MMAP_THRESHOLD, kBytes);
}

// The first step also brings all that comes from outside: parameters, optimizer state.
void simulate_calls(benchmark::State& state) {
  keep_memory();
  const Trace trace = subject_of(state).trace();
  const auto steps = static_cast<std::size_t>(state.range(1));
  const Bytes budget = 2 * measure_demand(trace).peak_bytes;
  for (auto _ : state) {
    if (!simulate(trace, {.budget = budget, .steps = steps}).is_ok()) {
      state.SkipWithError("does not fit");
    }
  }
  count_calls(state, steps * trace.call_count());
}

void read_ours(benchmark::State& state) {
  const Trace trace = subject_of(state).trace();
  const std::string text = format_trace(trace);
  for (auto _ : state) benchmark::DoNotOptimize(parse_trace(text, "bench"));
  count_calls(state, trace.call_count());
}

void read_dtr(benchmark::State& state) {
  const std::string text = read_text_file(*subject_of(state).log);
  std::size_t calls = 0;
  for (auto _ : state) calls = parse_dtr_log(text, "bench", Mutation::kInPlace).call_count();
  count_calls(state, calls);
}

void each_subject(benchmark::internal::Benchmark* benchmark) {
  for (std::size_t i = 0; i < subjects().size(); ++i) benchmark->Arg(static_cast<int>(i));
}
void each_log(benchmark::internal::Benchmark* benchmark) {
  for (std::size_t i = 0; i < subjects().size(); ++i) {
    if (subjects()[i].log) benchmark->Arg(static_cast<int>(i));
  }
}
void each_subject_for_steps(benchmark::internal::Benchmark* benchmark) {
  for (std::size_t i = 0; i < subjects().size(); ++i) {
    for (const int steps : {1, 10}) benchmark->Args({static_cast<int>(i), steps});
  }
}

BENCHMARK(simulate_calls)->Apply(each_subject_for_steps);
BENCHMARK(read_ours)->Apply(each_subject);
BENCHMARK(read_dtr)->Apply(each_log);

}  // namespace
}  // namespace coop::sim
