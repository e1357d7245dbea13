#pragma once

// The versions of PyTorch that the plugin is known to be right on. It reaches into what PyTorch promises nobody
// (a dispatch key, two private members of a storage): with any other version it refuses to be built or to
// start.
//
// Where they differ the code asks PyTorch's headers, and for a number only where those do not tell:
//
// | up to 2.12                                      | from 2.13 on                                |
// |-------------------------------------------------|---------------------------------------------|
// | the key Python comes after ours: what Python    | it comes before ours (`kIsPythonBelowUs`    |
// | code calls is seen on a second key              | in dispatch_key.hpp)                        |
//
// | up to 2.13                                      | from 2.14 on                                |
// |-------------------------------------------------|---------------------------------------------|
// | `quantile` sorts                                | it picks few elements by itself, out of     |
// |                                                 | memory that it reads without an operator    |
// |                                                 | (`kQuantilesArePicked`)                     |
//
// From 2.13 on a storage can have a hook that is called before it is written (`set_materializer`). It is of no
// use to us: those who only read do not call it, and must be refused by the flag, which comes before the hook.

#include <string>

#include <torch/headeronly/version.h>

// cmake/parts.cmake reads these two lines.
#define COOP_OLDEST_TORCH_MINOR 11
#define COOP_NEWEST_TORCH_MINOR 15

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < COOP_OLDEST_TORCH_MINOR || \
    TORCH_VERSION_MINOR > COOP_NEWEST_TORCH_MINOR
#error "coop does not support this version of PyTorch: those that it does are above"
#endif

namespace coop::plugin {

inline constexpr bool kQuantilesArePicked = TORCH_VERSION_MINOR >= 14;

// "2.11 to 2.15"
std::string supported_torch();

// Throws if the PyTorch that runs is not of the version that this library was built against.
void require_matching_torch();

}  // namespace coop::plugin
