#pragma once

// A recording of what runs inside a budget, in the simulator's format (docs/trace-format.md).
//
// There is one at a time. It ends with its budget if it has not been ended before; its trace is there until it is
// asked for.

#include <string>
#include <string_view>

#include "plugin/session.hpp"

namespace coop::plugin {

// Throws c10::Error: no budget is in force, or something is recorded already.
void begin_recording(bool notes_decisions);
void record_step();
void record_remark(std::string_view text);
// The trace. Throws c10::Error if there is no recording, or if it could not be written down.
std::string end_recording();

// The budget is about to end.
void stop_recording_of(Session& session) noexcept;

}  // namespace coop::plugin
