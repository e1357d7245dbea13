#pragma once

// A recording of what runs inside a budget, in the simulator's format (docs/trace-format.md).
//
// There is one at a time. It ends with its budget if it has not been ended before; its trace is there until it is
// asked for.

#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "plugin/session.hpp"

namespace coop::plugin {

// Of the budget on the device, or of the one that began last. Throws c10::Error: none is in force, or something is
// recorded already.
void begin_recording(bool notes_decisions, std::optional<c10::Device> device);
void record_step();
void record_remark(std::string_view text);
// What this thread runs from here on is this module's; empty: nobody's. No error if nothing is recorded.
void record_module(const std::string& name);
// What people call a tensor's storage, if the recording has heard of it.
void record_name(const at::Tensor& tensor, std::string_view text);
// The trace. Throws c10::Error if there is no recording, or if it could not be written down.
std::string end_recording();

// The budget is about to end.
void stop_recording_of(Session& session) noexcept;

}  // namespace coop::plugin
