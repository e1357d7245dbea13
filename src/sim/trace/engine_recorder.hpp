#pragma once

// Writes down what an engine is asked for, as a trace; and what it decides, if that is wanted.
//
//     EngineRecorder recorder(with, describe, EngineRecorder::Decisions::kNoted);
//     recorder.attach_to(engine);
//     ... a program runs ...
//     Trace trace = recorder.detach();
//
// A simulation of the trace with the same budget and policy then makes the same decisions in the same order, if
// the recording began with the engine and the program asked from one thread. What was there when the recording
// began is in the trace as having come from outside. Operators that other threads are in the middle of when it
// ends count as failed.

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/engine/engine.hpp"
#include "sim/trace/pending_requests.hpp"
#include "sim/trace/trace.hpp"
#include "sim/trace/trace_builder.hpp"

namespace coop::sim {

class EngineRecorder final : private RequestObserver, private EngineObserver {
 public:
  struct With {
    Bytes budget = 0;
    Bytes small_limit = 0;
    double most_slowdown = 0;
    std::string policy;
  };
  // What the engine does not know of an operator. Asked by the thread that ran it.
  struct Facts {
    std::string op;
    std::string module{};
    bool is_random = false;
  };
  using Describe = std::function<Facts(const CallResult&)>;
  enum class Decisions : std::uint8_t { kIgnored, kNoted };

  EngineRecorder(With with, Describe describe, Decisions decisions);
  EngineRecorder(const EngineRecorder&) = delete;
  EngineRecorder& operator=(const EngineRecorder&) = delete;
  ~EngineRecorder() override;

  // Once. Throws TraceError.
  void attach_to(Engine& engine);
  // A step begins, or something worth a remark; what cannot be a name is an error.
  void begin_step();
  void annotate(std::string_view text);
  // What people call a storage. One that is gone stays without.
  void name_storage(StorageId storage, std::string_view text);
  // The trace up to now. Throws TraceError or bad_alloc if something could not be written down, with nothing
  // left behind.
  Trace detach();

 private:
  void on_request(const EngineRequest& request) noexcept override;
  void on_begin(std::uint64_t call, std::span<const StorageId> reads, std::span<const Write> writes,
                bool has_failed) noexcept override;
  void on_end(std::uint64_t call, const CallResult& result,
              std::span<const StorageId> made) noexcept override;
  void on_event(const EngineEvent& event) noexcept override;

  template <typename Function>
  void note(Function&& fn) noexcept;
  void end_of_unknown(const CallResult& result, std::span<const StorageId> made);
  void close(std::uint64_t call);
  void write_if_nothing_runs();

  With with_;
  Describe describe_;
  bool notes_decisions_;
  Engine* engine_ = nullptr;
  mutable std::mutex mutex_;
  TraceBuilder builder_;
  PendingRequests pending_;
  std::vector<std::uint64_t> open_;  // RunningCall::number
  std::unordered_map<Token, StorageId> storages_;
  std::unordered_map<Token, std::uint64_t> calls_;
  std::string failure_;  // nothing is written down after it
};

}  // namespace coop::sim
