#pragma once

// The last request of the program's that could not be served, and what its error says.

#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "core/engine/out_of_memory.hpp"

namespace coop::plugin {

struct LastOutOfMemory {
  MemoryReport report;
  std::string op;  // that ran; empty: none
  c10::Device device = c10::Device(c10::kCPU);
  Bytes budget = 0;
  Bytes parameters = 0;  // as far as gradients have been made for them
  Bytes gradients = 0;
  Bytes enough_budget = 0;  // would have served the request, were all else the same; 0: not known
  Bytes most_budget = 0;    // that there can be on the device: it has no more
};

// Lightning and accelerate know PyTorch's out-of-memory errors by their words, for each device its own. Everyone
// of ours has them, so that a batch size is found as it is without coop.
std::string in_words_of_pytorch(c10::DeviceType device, const std::string& text);

// On the device, or anywhere. None if there was none.
std::optional<LastOutOfMemory> last_out_of_memory(std::optional<c10::Device> device = std::nullopt);

}  // namespace coop::plugin
