// What Python sees: functions of torch.ops.coop, and the fallback that sees every operator.
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>
#include <torch/library.h>

#include "core/base/errors.hpp"
#include "core/policy/policy.hpp"
#include "plugin/budget_size.hpp"
#include "plugin/contents.hpp"
#include "plugin/dispatch_key.hpp"
#include "plugin/gradients.hpp"
#include "plugin/interception.hpp"
#include "plugin/profiler.hpp"
#include "plugin/raw_readers.hpp"
#include "plugin/recording.hpp"
#include "plugin/registered_operators.hpp"
#include "plugin/session.hpp"
#include "plugin/tensor_parts.hpp"
#include "plugin/torch_version.hpp"

namespace coop::plugin {
namespace {

// Whatever is wrong with what the program wrote, it is told before anything begins.
template <typename Function>
auto as_value_error(Function&& fn) {
  try {
    return fn();
  } catch (const InvalidArgument& error) {
    TORCH_CHECK_VALUE(false, "coop: ", error.what());
  }
}

std::int64_t size_of_budget(const std::string& text, c10::Device device) {
  return as_value_error([&] {
    const Bytes bytes = budget_bytes(text, device_at(device).whole_bytes());
    if (bytes > kMaxPoolBytes) {
      // Rounded, the most there can be would read "1.0 TiB", and that is too much already.
      throw InvalidArgument("a budget of " + format_bytes(bytes) +
                            " is more than there can be: it must be less than 1 TiB, at most " +
                            std::to_string(kMaxPoolBytes) + " bytes");
    }
    return static_cast<std::int64_t>(bytes);
  });
}

void check_policy(const std::string& name) {
  as_value_error([&] { static_cast<void>(make_policy(name)); });
}

void prove() {
  static std::once_flag is_first;
  std::call_once(is_first, [] {
    require_matching_torch();
    intercept_below_python();
    intercept_raw_readers();
  });
  static std::once_flag is_proved;
  std::call_once(is_proved, prove_interception);
}

void enter(std::int64_t bytes, c10::Device device, bool stress, bool verify, bool audit,
           std::int64_t small_limit, const std::string& policy, double max_slowdown,
           double pace_window) {
  TORCH_CHECK_VALUE(bytes > 0 && small_limit >= 0, "coop: a budget is a positive number of bytes");
  prove();
  Session::begin({.device = device,
                  .budget = static_cast<Bytes>(bytes),
                  .small_limit = static_cast<Bytes>(small_limit),
                  .policy = policy,
                  .stress = stress,
                  .verify = verify,
                  .audit = audit,
                  .max_slowdown = max_slowdown,
                  .pace_window_ns = pace_window * 1e9});
  if (this_thread.budgets++ == 0) this_thread.was_in_scope = is_thread_in_scope();
  put_thread_in_scope(true);
}

// The calling thread is in no scope while one of its budgets ends, and afterwards only if another one goes on that it
// was in: one that it has begun, or that it was in before.
class Leaving {
 public:
  Leaving() : is_its_own_(this_thread.budgets > 0), was_in_scope_(is_thread_in_scope()) {
    put_thread_in_scope(false);
  }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() {
    if (is_its_own_) --this_thread.budgets;
    const bool was_before = is_its_own_ ? this_thread.was_in_scope : was_in_scope_;
    put_thread_in_scope(Session::active() != nullptr && (this_thread.budgets > 0 || was_before));
  }

 private:
  bool is_its_own_;
  bool was_in_scope_;
};

void leave(c10::Device device) {
  const Leaving leaving;
  drop_failed_backward();
  Session::end(device);
}

void for_each_active(const std::function<void(Session&)>& fn) {
  TORCH_CHECK(Session::active() != nullptr, "coop: there is no budget");
  Session::for_each_active(fn);
}

void bring_back_storage(c10::StorageImpl& impl) {
  const CurrentSession inside(CurrentSession::Whose::kAnybodys);
  // What an operator is run again on is there.
  if (!inside || this_thread.is_replaying) return;
  StorageRecord* record = memory_of(impl).record;
  if (record == nullptr || !record->session.is_active()) return;
  with_torch_errors([&] { record->session.engine().make_resident(record->id); });
  record->session.hand_over(*record);
}

void export_storage(const c10::Storage& storage) {
  const CurrentSession inside(CurrentSession::Whose::kAnybodys);
  Session* session = inside ? Session::active_on(storage.device()) : nullptr;
  if (session == nullptr) return;
  if (this_thread.is_replaying || this_thread.registered_depth > 0) {
    return bring_back_storage(*storage.unsafeGetStorageImpl());
  }
  with_torch_errors([&] { session->export_storage(*storage.unsafeGetStorageImpl()); });
}

void export_tensor(const at::Tensor& tensor) {
  if (tensor.has_storage()) export_storage(tensor.storage());
}

void distrust_foreign() {
  const CurrentSession inside(CurrentSession::Whose::kAnybodys);
  if (inside) Session::for_each_active([](Session& it) { it.distrust_foreign(); });
}

void pin_tensor(const at::Tensor& tensor) {
  if (Session::is_in_forked_child()) return;  // nothing goes or moves there
  const CurrentSession inside(CurrentSession::Whose::kAnybodys);
  TORCH_CHECK(inside, "coop: a tensor can be pinned only inside a budget");
  Session* session = tensor.has_storage() ? Session::active_on(tensor.device()) : nullptr;
  if (session == nullptr) return;
  with_torch_errors([&] { session->pin_storage(*tensor.storage().unsafeGetStorageImpl()); });
}

void bring_back(const at::Tensor& tensor) {
  if (tensor.has_storage()) bring_back_storage(*tensor.storage().unsafeGetStorageImpl());
}

// Tensors that Python code asked to have in place for a moment.
struct Held {
  explicit Held(at::TensorList tensors) {
    // What an operator is run again on is there, and in nobody else's hands.
    if (!session_ || this_thread.is_replaying) return;
    contents_.emplace();
    for (const at::Tensor& it : tensors) {
      if (!is_strange(it)) contents_->add(it);
    }
    contents_->bring_back();
  }

 private:
  CurrentSession session_;
  std::optional<Contents> contents_;
};
thread_local std::vector<std::unique_ptr<Held>> held;

void hold(at::TensorList tensors) {
  with_torch_errors([&] { held.push_back(std::make_unique<Held>(tensors)); });
}

void let_go_of_held() { held.pop_back(); }

bool is_resident(const at::Tensor& tensor) {
  return memory_of(*tensor.storage().unsafeGetStorageImpl()).data != nullptr;
}

bool begin_ease() {
  const CurrentSession inside;
  TORCH_CHECK(inside, "coop: there is no budget to be at ease in");
  bool are_all = true;
  Session::for_each_active([&](Session& it) { are_all = it.try_ease() && are_all; });
  return are_all;
}

void end_ease() {
  const CurrentSession inside;
  if (inside) Session::for_each_active([](Session& it) { it.end_ease(); });
}

Session& newest() {
  Session* session = Session::active();
  TORCH_CHECK(session != nullptr, "coop: there is no budget");
  return *session;
}

// False where operators have only been enqueued when they return: what the host does meanwhile is not lost.
bool begin_own_time() {
  Session& session = newest();
  if (!session.times().has_wall_times()) return false;
  session.act_as_bound();
  session.own_time().begin();
  return true;
}

std::vector<std::int64_t> end_own_time() {
  const OwnTime::Sums sums = newest().own_time().end();
  return {static_cast<std::int64_t>(sums.operators), static_cast<std::int64_t>(sums.own_ns),
          static_cast<std::int64_t>(sums.kernel_ns)};
}

void validate() {
  with_torch_errors([] { for_each_active([](Session& it) { it.engine().validate(); }); });
}

TORCH_LIBRARY(coop, library) {
  library.def("size_of_budget(str text, Device device) -> int", &size_of_budget);
  library.def("check_policy(str name) -> ()", &check_policy);
  library.def(
      "enter(int bytes, Device device, bool stress, bool verify, bool audit, int small_limit, str "
      "policy, "
      "float max_slowdown, float pace_window) -> ()",
      &enter);
  library.def("leave(Device device) -> ()", &leave);
  // For a thread that was started by one inside.
  library.def("enter_thread() -> ()", [] { put_thread_in_scope(true); });
  library.def("is_thread_in_scope() -> bool", &is_thread_in_scope);
  // For a device, or at all.
  library.def("has_budget(Device? device=None) -> bool", [](std::optional<c10::Device> device) {
    return (device ? Session::active_on(*device) : Session::active()) != nullptr;
  });
  // Of a budget that is in force, in the simulator's format.
  library.def("begin_recording(bool notes_decisions, Device? device=None) -> ()", &begin_recording);
  library.def("record_step() -> ()", &record_step);
  library.def("record_remark(str text) -> ()",
              [](const std::string& text) { record_remark(text); });
  library.def("record_module(str name) -> ()", &record_module);
  library.def("record_name(Tensor tensor, str text) -> ()",
              [](const at::Tensor& tensor, const std::string& text) { record_name(tensor, text); });
  library.def("end_recording() -> str", &end_recording);
  // From now on as if memory were short: operators, nanoseconds that coop took for them, and those of their kernels.
  library.def("begin_own_time() -> bool", &begin_own_time);
  library.def("end_own_time() -> int[]", &end_own_time);
  library.def("measure_costs_anew() -> ()",
              [] { for_each_active([](Session& it) { it.times().measure_anew(); }); });
  // Resident, and at the same address, until it dies.
  library.def("export_tensor(Tensor tensor) -> ()", &export_tensor);
  library.def("export_storage(Storage storage) -> ()", &export_storage);
  // The same for what only operators write.
  library.def("pin_tensor(Tensor tensor) -> ()", &pin_tensor);
  library.def("distrust_foreign() -> ()", &distrust_foreign);
  // Resident until the next operator.
  library.def("bring_back(Tensor tensor) -> ()", &bring_back);
  // Resident and in place until let_go(), on the same thread.
  library.def("hold(Tensor[] tensors) -> ()", &hold);
  library.def("let_go() -> ()", &let_go_of_held);
  library.def("is_resident(Tensor tensor) -> bool", &is_resident);
  // At once, however little the program has run (ease.hpp); false if other threads are in the way.
  library.def("begin_ease() -> bool", &begin_ease);
  library.def("end_ease() -> ()", &end_ease);
  library.def("register_operator(str name, bool is_random) -> ()", &register_operator);
  // Python has what is to be done.
  library.def("warn_of_unknown(str op, int bytes) -> ()");
  library.def("warn_of_unseen_write(str made_by, int bytes) -> ()");
  library.def("warn_of_slowdown(float slowdown, int budget, str advice) -> ()");
  // Which operators of this thread come through, whether there is a budget or not.
  // Those with these numbers fail before they begin, as if there were no memory for them.
  library.def("begin_watching(int[] failing=[]) -> ()", &begin_watching);
  library.def("end_watching() -> str[]", &end_watching);
  library.def("prove() -> ()", &prove);
  library.def("serve_profiler(bool is_on) -> ()", &serve_profiler);
  // The PyTorch that this library is for, "2.11.0", and those that there can be one for, "2.11 to 2.15".
  library.def("built_for_torch() -> str", [] { return std::string(TORCH_VERSION); });
  library.def("supported_torch() -> str", &supported_torch);
  // Every invariant of the engine's; slow.
  library.def("validate() -> ()", &validate);
}

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&intercept>());
}

}  // namespace
}  // namespace coop::plugin
