#pragma once

// Synthetic networks that train: traces to try policies on where there is no recorded one. Shapes and
// costs are drawn from the seed; a seed gives the same trace everywhere.

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/trace/trace.hpp"

namespace coop::sim {

struct GeneratorOptions {
  std::uint64_t seed = 0;
  std::uint64_t steps = 3;
  // Or moments of a sequence, or leaves of a tree. 0: drawn from the seed.
  std::uint64_t layers = 0;

  [[nodiscard]] std::uint64_t layers_or(std::uint64_t drawn) const {
    return layers == 0 ? drawn : layers;
  }
};

struct Generator {
  std::string_view name;
  std::string_view summary;
  Trace (*generate)(const GeneratorOptions& options);
};

// All of them.
const std::vector<Generator>& known_generators();
// Throws InvalidArgument, naming the kinds there are, and for options out of range.
Trace generate(std::string_view kind, const GeneratorOptions& options);

// One each, in networks_of_images.cpp and networks_of_sequences.cpp.
Trace generate_chain(const GeneratorOptions& options);
Trace generate_residual(const GeneratorOptions& options);
Trace generate_random_path(const GeneratorOptions& options);
Trace generate_evaluation(const GeneratorOptions& options);
Trace generate_transformer(const GeneratorOptions& options);
Trace generate_variable_length(const GeneratorOptions& options);
Trace generate_lstm(const GeneratorOptions& options);
Trace generate_tree(const GeneratorOptions& options);

}  // namespace coop::sim
