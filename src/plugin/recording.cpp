#include "plugin/recording.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <c10/util/Exception.h>

#include "plugin/recorded_call.hpp"
#include "plugin/running_module.hpp"
#include "sim/trace/engine_recorder.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::plugin {
namespace {

struct Recording {
  Session* session = nullptr;  // null: it is over
  std::unique_ptr<sim::EngineRecorder> recorder;
  sim::Trace trace;
  std::exception_ptr failure;
};

std::mutex recording_mutex;
std::optional<Recording>& recording() {
  static auto& it = *new std::optional<Recording>;  // sessions may outlive main()
  return it;
}

// What the thread runs that has just told the engine that it is done.
sim::EngineRecorder::Facts describe(const CallResult& result) {
  sim::EngineRecorder::Facts facts;
  const c10::OperatorHandle* op = this_thread.running;
  facts.op = op == nullptr ? "unknown" : toString(op->operator_name());
  facts.module = module_of_this_thread();
  if (result.is_replayable) {
    const auto* call = reinterpret_cast<const RecordedCall*>(result.token);  // NOLINT: our own
    facts.is_random = call->random != nullptr;
  } else if (result.cost == 0 && result.outputs.empty()) {
    facts.op += " (side effect)";  // which has a Call of its own
  }
  return facts;
}

void stop(Recording& it) noexcept {
  if (it.session == nullptr) return;
  forget_modules();
  it.session->take_light_calls(true);
  it.session = nullptr;
  try {
    it.trace = it.recorder->detach();
  } catch (...) {
    it.failure = std::current_exception();
  }
  it.recorder = nullptr;
}

Recording& that_goes_on() {
  TORCH_CHECK(recording() && recording()->session != nullptr, "coop: nothing is being recorded");
  return *recording();
}

}  // namespace

void begin_recording(bool notes_decisions, std::optional<c10::Device> device) {
  const std::scoped_lock lock(recording_mutex);
  TORCH_CHECK(!recording(), "coop: a recording inside a recording: there is one already");
  const CurrentSession inside;
  Session* session = !inside ? nullptr : device ? Session::active_on(*device) : &*inside;
  TORCH_CHECK(session != nullptr, "coop: what is recorded runs inside a budget, and there is none",
              device ? " for " + device->str() : "");
  const SessionOptions& options = session->options();
  using Decisions = sim::EngineRecorder::Decisions;
  with_torch_errors([&] {
    Recording it{.session = session};
    it.recorder = std::make_unique<sim::EngineRecorder>(
        sim::EngineRecorder::With{.budget = options.budget,
                                  .small_limit = options.small_limit,
                                  .most_slowdown = engine_options(options).most_slowdown,
                                  .policy = options.policy},
        describe, notes_decisions ? Decisions::kNoted : Decisions::kIgnored);
    session->take_light_calls(false);
    it.recorder->attach_to(session->engine());
    recording().emplace(std::move(it));
  });
}

void record_step() {
  const std::scoped_lock lock(recording_mutex);
  that_goes_on().recorder->begin_step();
}

void record_remark(std::string_view text) {
  const std::scoped_lock lock(recording_mutex);
  try {
    that_goes_on().recorder->annotate(text);
  } catch (const sim::TraceError& error) {
    TORCH_CHECK_VALUE(false, "coop: ", error.what());
  }
}

void record_module(const std::string& name) {
  const std::scoped_lock lock(recording_mutex);
  if (recording() && recording()->session != nullptr) enter_module(name);
}

void record_name(const at::Tensor& tensor, std::string_view text) {
  if (!tensor.has_storage()) return;
  const std::scoped_lock lock(recording_mutex);
  Recording& it = that_goes_on();
  const StorageRecord* record =
      it.session->known_record_of(*tensor.storage().unsafeGetStorageImpl());
  if (record == nullptr) return;
  try {
    it.recorder->name_storage(record->id, text);
  } catch (const sim::TraceError& error) {
    TORCH_CHECK_VALUE(false, "coop: ", error.what());
  }
}

std::string end_recording() {
  const std::scoped_lock lock(recording_mutex);
  TORCH_CHECK(recording(), "coop: nothing is being recorded");
  stop(*recording());
  const Recording it = *std::move(recording());
  recording().reset();
  return with_torch_errors([&] {
    if (it.failure) std::rethrow_exception(it.failure);
    return sim::format_trace(it.trace);
  });
}

void stop_recording_of(Session& session) noexcept {
  const std::scoped_lock lock(recording_mutex);
  if (recording() && recording()->session == &session) stop(*recording());
}

}  // namespace coop::plugin
