#pragma once

// One operator of the program, from its arguments to its results.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

#include "core/engine/engine.hpp"
#include "plugin/audit.hpp"
#include "plugin/operator_facts.hpp"
#include "plugin/recorded_call.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {

// Runs the kernel. If it asked for memory, got none, and went on without, that counts as out of memory: cuDNN takes
// another algorithm then, with other bits.
void redispatch_or_refuse(Session& session, const c10::OperatorHandle& op,
                          c10::DispatchKeySet below, torch::jit::Stack& stack);

class InterceptedCall {
 public:
  // Opaque: whatever runs it does what it likes with its arguments.
  InterceptedCall(Session& session, const c10::OperatorHandle& op, const OperatorFacts& facts,
                  c10::DispatchKeySet below, torch::jit::Stack& stack, bool is_opaque);
  // One that has been taken to be light (light_call.hpp), has run, and has made something large.
  InterceptedCall(Session& session, const c10::OperatorHandle& op, const OperatorFacts& facts,
                  c10::DispatchKeySet below, torch::jit::Stack& stack,
                  std::span<const c10::IValue> arguments);
  InterceptedCall(const InterceptedCall&) = delete;
  InterceptedCall& operator=(const InterceptedCall&) = delete;
  ~InterceptedCall();

  void run();
  void note_that_it_ran(const OperatorTimes::Start& start);

 private:
  friend class CallOfSeveral;
  // What the operator does with a storage.
  enum class Role : std::uint8_t {
    kRead,
    kChanged,      // written, and what is there afterwards may depend on what was there
    kOverwritten,  // written all over
    kSideEffect,   // written, but nothing that it makes depends on it
  };
  struct Use {
    c10::intrusive_ptr<c10::StorageImpl> impl;
    StorageRecord* record = nullptr;
    Role role = Role::kRead;
    std::size_t number = 0;  // of the engine's input, or of the overwritten storage
  };

  void look_at_arguments();
  void add_use(const at::Tensor& tensor, Role role);
  [[nodiscard]] Role role_of(const at::Tensor& tensor, std::size_t argument) const;
  [[nodiscard]] Use* find_use(const c10::StorageImpl* impl);
  [[nodiscard]] Taint taint() const;
  void begin();
  void begin_audit();
  void record_arguments();
  void run_kernel();
  [[nodiscard]] bool may_take_other_ways() const;
  [[nodiscard]] bool can_begin_anew() const;
  std::optional<MemoryReport> run_kernel_once();
  void make_room(const MemoryReport& no_room);
  void redispatch();
  void end_drawing();
  void finish_run(double cost);
  void use_on_this_stream();
  [[nodiscard]] std::uint64_t kind() const { return recorded_ ? recorded_->kind() : 0; }
  void abort() noexcept;
  void look_at_results();
  bool adopt(const at::Tensor& tensor);
  void describe_contents();
  [[nodiscard]] std::vector<c10::StorageImpl*> new_storages();
  void finish_audit();
  void finish(double cost);
  void count_made(bool was_recorded) const;
  void note_what_it_feeds_on() noexcept;
  void let_go() noexcept;

  Session& session_;
  const c10::OperatorHandle& op_;
  const OperatorFacts& facts_;
  c10::DispatchKeySet below_;
  torch::jit::Stack& stack_;
  std::span<const c10::IValue> arguments_;  // good until it runs
  bool is_opaque_;
  bool has_strange_tensors_ = false;  // among its arguments: not just memory with a shape
  bool has_strange_results_ = false;
  bool reads_elsewhere_ = false;     // memory that the engine does not know: of another device
  bool has_closed_results_ = false;  // which we cannot look into: they may hold any argument

  std::size_t kept_bytes_ = 0;  // since nothing is known of the operator

  c10::SmallVector<Use, 6> uses_;
  std::unordered_map<const c10::StorageImpl*, std::size_t> places_;  // in uses_, if those are many
  Taint taint_ = Taint::kNone;  // why nothing is recorded of it
  TurnToDraw turn_;
  std::optional<RandomState> random_;
  std::optional<OperatorTimes::Start> start_;  // while it runs
  std::unique_ptr<RecordedCall> recorded_;
  std::unique_ptr<Audit> audit_;
  RunningCall call_;
  RunningCall side_effects_;

  struct Made {
    std::unique_ptr<StorageRecord> record;
    Session::Raw raw;
  };
  c10::SmallVector<Made, 2> made_;
};

}  // namespace coop::plugin
