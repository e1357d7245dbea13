#pragma once

// An operator that concerns several budgets (Note [Several budgets] in concerned.hpp).

#include <memory>
#include <span>
#include <vector>

#include "plugin/concerned.hpp"
#include "plugin/intercepted_call.hpp"

namespace coop::plugin {

class CallOfSeveral {
 public:
  // Its arguments are on the stack.
  CallOfSeveral(const c10::OperatorHandle& op, const OperatorFacts& facts,
                c10::DispatchKeySet below, torch::jit::Stack& stack, bool is_opaque)
      : op_(op), facts_(facts), below_(below), stack_(stack), is_opaque_(is_opaque) {}
  CallOfSeveral(const CallOfSeveral&) = delete;
  CallOfSeveral& operator=(const CallOfSeveral&) = delete;
  ~CallOfSeveral() = default;

  void run(std::span<Session* const> sessions);

 private:
  using Arguments = c10::SmallVector<c10::IValue, 8>;

  [[nodiscard]] bool try_at_ease(std::span<Session* const> hearing);
  void run_unheard();
  void note_owners(Session& session);
  void run_heard(std::span<Session* const> hearing);
  void warn_of_what_is_kept() const;
  void begin();
  void run_kernel();
  [[nodiscard]] bool can_begin_anew() const;
  [[nodiscard]] InterceptedCall* refused_by(const MemoryReport& no_room) const;
  void finish();
  void abort() noexcept;
  [[nodiscard]] Arguments arguments() const;
  void put_back(const Arguments& arguments, std::size_t under);

  const c10::OperatorHandle& op_;
  const OperatorFacts& facts_;
  c10::DispatchKeySet below_;
  torch::jit::Stack& stack_;
  bool is_opaque_;
  std::vector<std::unique_ptr<InterceptedCall>> calls_;  // one for each of the budgets
  std::size_t begun_ = 0;                                // of those
};

}  // namespace coop::plugin
