#include "sim/generators/generators.hpp"

#include <algorithm>
#include <string>

#include "core/base/errors.hpp"
#include "core/base/words.hpp"

namespace coop::sim {

const std::vector<Generator>& known_generators() {
  static const std::vector<Generator> kGenerators{
      {"chain", "fully connected layers, one after the other", generate_chain},
      {"residual", "a residual convolutional network with in-place ReLU", generate_residual},
      {"transformer", "attention and feed-forward layers with dropout; Adam", generate_transformer},
      {"lstm", "a recurrent network whose state is carried from step to step", generate_lstm},
      {"tree", "a recursive network over another random tree in each step", generate_tree},
      {"random-path", "one of four branches a layer, as in architecture search",
       generate_random_path},
      {"variable-length", "a transformer on sequences of another length in each step",
       generate_variable_length},
      {"evaluation", "a residual network, evaluated after each step", generate_evaluation},
  };
  return kGenerators;
}

Trace generate(std::string_view kind, const GeneratorOptions& options) {
  if (options.steps < 1 || options.steps > 100'000 || options.layers > 100'000) {
    throw InvalidArgument("a network has up to 100000 layers and runs for 1 to 100000 steps");
  }
  const auto& known = known_generators();
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Generator& each) { return each.name == kind; });
  if (found != known.end()) return found->generate(options);
  std::vector<std::string_view> names;
  for (const Generator& each : known) names.push_back(each.name);
  throw InvalidArgument("there is no network '" + std::string(kind) + "'; " +
                        what_was_meant(kind, names));
}

}  // namespace coop::sim
