#include "plugin/captured.hpp"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "plugin/dispatch_key.hpp"
#include "plugin/recorded_call.hpp"
#include "plugin/session.hpp"
#include "plugin/tensor_parts.hpp"

namespace coop::plugin {
namespace {

void give_to_graph(Session& session, std::span<const c10::IValue> values) {
  for_each_tensor(values, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    for_each_part(tensor,
                  [&](const at::Tensor& part) { session.give_to_graph(*storage_of(part)); });
  });
}

}  // namespace

bool is_captured(Session& session) {
  if (private_pools.load(std::memory_order_relaxed) == 0) return false;
  return session.streams() != nullptr && session.streams()->is_capturing();
}

void run_captured(std::span<Session* const> sessions, const c10::OperatorHandle& op,
                  c10::DispatchKeySet below, torch::jit::Stack& stack) {
  for (Session* session : sessions) {
    TORCH_CHECK(!is_captured(*session) || !session->streams()->is_home(),
                "coop: a CUDA graph is captured on the stream on which this budget has run so far. "
                "Capture it on another: torch.cuda.graph does so unless it is given a stream.");
  }
  const auto give_all = [&](std::span<const c10::IValue> values) {
    for (Session* session : sessions) give_to_graph(*session, values);
  };
  const Running running(op);
  const c10::impl::ExcludeDispatchKeyGuard once(kOurKeys);
  give_all(std::span(stack).last(op.schema().arguments().size()));
  op.redispatchBoxed(below, &stack);
  give_all(std::span(stack).last(op.schema().returns().size()));
}

// --- what the session does about it ---

void Session::give_to_graph(c10::StorageImpl& impl) {
  with_torch_errors([&] {
    StorageRecord* record = record_of(impl);
    if (record == nullptr) return;
    const bool stays = record->is_exported || record->is_foreign;
    if (stays && !record->is_trusted) return;
    TORCH_CHECK(engine_.is_resident(record->id),
                "coop: a CUDA graph that is being captured uses a tensor of ", impl.nbytes(),
                " bytes that is evicted now, and nothing can be computed again inside a capture. "
                "Call coop.pin on it before.");
    export_storage(impl);
    has_given_to_graph_ = true;
  });
}

void Session::distrust_foreign() {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> trusted;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [impl, record] : foreign_) {
      if (!record->is_trusted) continue;
      if (auto storage = record->storage.lock()) trusted.push_back(std::move(storage));
    }
  }
  with_torch_errors([&] {
    for (const auto& storage : trusted) export_storage(*storage);
  });
}

void Session::count_outside() {
  const std::scoped_lock alone(outside_mutex_);
  // What was done at home for the graph is over before anybody can launch it.
  if (private_pools == 0 && has_given_to_graph_.exchange(false)) device_.wait();
  const Bytes now = device_.bytes_now();
  const Bytes taken = now - std::min(now, torchs_before_);
  if (taken == outside_bytes_) return;
  outside_.reset();
  outside_bytes_ = 0;
  sweep_foreign();
  if (taken == 0) return;
  // A storage that nobody reads: it only takes room.
  auto all = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), taken,
                                                   c10::DataPtr(this, device_.which()), nullptr,
                                                   /*resizable=*/false);
  with_torch_errors([&] { static_cast<void>(add_foreign(*all, memory_of(*all), taken)); });
  outside_ = std::move(all);
  outside_bytes_ = taken;
}

}  // namespace coop::plugin
