// What Python sees: functions of torch.ops.coop, and the fallback that sees every operator.
#include <mutex>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>
#include <torch/library.h>

#include "plugin/dispatch_key.hpp"
#include "plugin/interception.hpp"
#include "plugin/raw_readers.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

void enter(std::int64_t bytes, bool stress, std::int64_t small_limit, const std::string& policy) {
  static std::once_flag is_first;
  std::call_once(is_first, [] {
    intercept_below_python();
    intercept_raw_readers();
  });
  static std::once_flag is_proved;
  std::call_once(is_proved, prove_interception);
  TORCH_CHECK(bytes > 0 && small_limit >= 0, "coop: a budget is a positive number of bytes");
  Session::begin({.bytes = static_cast<Bytes>(bytes),
                  .small_limit = static_cast<Bytes>(small_limit),
                  .policy = policy,
                  .stress = stress});
  put_thread_in_scope(true);
}

void leave() {
  put_thread_in_scope(false);
  Session::end();
}

Session& active() {
  Session* session = Session::active();
  TORCH_CHECK(session != nullptr, "coop: there is no budget");
  return *session;
}

c10::Dict<std::string, std::int64_t> stats() {
  Session& session = active();
  const Session::Stats own = session.stats();
  const EngineStats& engine = session.engine().stats();
  const Pool& pool = session.engine().pool();
  c10::Dict<std::string, std::int64_t> result;
  const auto put = [&](const char* name, auto value) {
    result.insert(name, static_cast<std::int64_t>(value));
  };
  put("operators", own.operators);
  put("evicted_once_bytes", session.world().bytes_evicted_once());
  put("evictions", session.world().evictions());
  put("restorations", session.world().restorations());
  put("replays", engine.replays);
  put("deepest_replay", engine.deepest_replay);
  put("replay_ns", engine.replay_ns);
  put("base_ns", engine.base_ns);
  put("cuts", engine.cuts);
  put("copies_aside", engine.copies_aside);
  put("held_by_lineage", engine.held_by_lineage);
  put("searches", session.engine().eviction_stats().searches);
  put("plans", engine.plans);
  put("planned_calls", engine.planned_calls);
  put("moves", session.engine().eviction_stats().moves);
  put("pool_bytes", pool.bytes());
  put("held_bytes", pool.held_bytes());
  put("peak_held_bytes", own.peak_held);
  put("storages", own.records);
  put("foreign_storages", own.foreign);
  put("raw_blocks", own.raw);
  put("calls", session.engine().graph().calls().size());
  return result;
}

// Bytes that operators made in the pool, by why they can never be evicted; "none": they can.
c10::Dict<std::string, std::int64_t> made_bytes() {
  const MadeBytes& made = active().made();
  c10::Dict<std::string, std::int64_t> result;
  for (std::size_t i = 0; i < kTaintNames.size(); ++i) {
    result.insert(std::string(kTaintNames[i]), static_cast<std::int64_t>(made.of(i)));
  }
  return result;
}

void export_storage(const c10::Storage& storage) {
  const CurrentSession session(CurrentSession::Whose::kAnybodys);
  if (!session) return;
  with_torch_errors([&] { session->export_storage(*storage.unsafeGetStorageImpl()); });
}

void export_tensor(const at::Tensor& tensor) {
  if (tensor.has_storage()) export_storage(tensor.storage());
}

void bring_back(const at::Tensor& tensor) {
  const CurrentSession session(CurrentSession::Whose::kAnybodys);
  if (!session || !tensor.has_storage()) return;
  StorageRecord* record = memory_of(*tensor.storage().unsafeGetStorageImpl()).record;
  if (record != nullptr && &record->session == &*session) {
    with_torch_errors([&] { session->engine().make_resident(record->id); });
  }
}

bool is_resident(const at::Tensor& tensor) {
  return memory_of(*tensor.storage().unsafeGetStorageImpl()).data != nullptr;
}

void validate() {
  with_torch_errors([] { active().engine().validate(); });
}

TORCH_LIBRARY(coop, library) {
  library.def("enter(int bytes, bool stress, int small_limit, str policy) -> ()", &enter);
  library.def("leave() -> ()", &leave);
  // For a thread that was started by one inside.
  library.def("enter_thread() -> ()", [] { put_thread_in_scope(true); });
  library.def("is_thread_in_scope() -> bool", &is_thread_in_scope);
  library.def("stats() -> Dict(str, int)", &stats);
  library.def("made_bytes() -> Dict(str, int)", &made_bytes);
  // Resident, and at the same address, until it dies.
  library.def("export_tensor(Tensor tensor) -> ()", &export_tensor);
  library.def("export_storage(Storage storage) -> ()", &export_storage);
  // Resident until the next operator.
  library.def("bring_back(Tensor tensor) -> ()", &bring_back);
  library.def("is_resident(Tensor tensor) -> bool", &is_resident);
  // Every invariant of the engine's; slow.
  library.def("validate() -> ()", &validate);
}

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&intercept>());
}

}  // namespace
}  // namespace coop::plugin
