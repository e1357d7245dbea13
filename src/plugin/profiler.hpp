#pragma once

namespace coop::plugin {

// PyTorch's profiler, if it records shapes, asks for the address of every argument, before the operator comes
// to us. While this is on, the arguments are brought back before it asks. Costs something for every
// operator: only while there is a profiler.
void serve_profiler(bool is_on);

}  // namespace coop::plugin
