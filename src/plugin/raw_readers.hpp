#pragma once

// Operators that PyTorch takes apart above us, and that on the way read some of their arguments' memory
// without a further operator, or copies of them. We must stand above that place, and have the memory there
// in time.

#include <cstdint>
#include <span>

#include <ATen/core/dispatch/Dispatcher.h>

namespace coop::plugin {

struct RawReader {
  const char* name;
  const char* overload;
  std::uint32_t arguments;    // one bit for each whose memory it reads
  bool reads_copies = false;  // that it has made on the way: those stay
};
std::span<const RawReader> raw_readers();

// Runs it, with these keys, while those arguments are there and stay in place.
void run_with_contents(const RawReader& reader, const c10::OperatorHandle& op,
                       torch::jit::Stack* stack, c10::DispatchKeySet keys);

// Whether one of those runs on this thread that reads copies.
bool are_copies_read();

// Puts us above those operators; for ever.
void intercept_raw_readers();

}  // namespace coop::plugin
