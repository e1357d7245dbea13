#include "plugin/profiler.hpp"

#include <memory>
#include <mutex>
#include <optional>

#include <ATen/record_function.h>

#include "plugin/contents.hpp"
#include "plugin/dispatch_key.hpp"
#include "plugin/recorded_call.hpp"
#include "plugin/session.hpp"
#include "plugin/tensor_parts.hpp"

namespace coop::plugin {
namespace {

// Inside an operator that we have seen: what it has, it has.
bool is_inside_operator() {
  const auto excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  return (excluded & kOurKeys) == kOurKeys;
}

std::unique_ptr<at::ObserverContext> bring_inputs_back(const at::RecordFunction& function) {
  if (is_inside_operator()) return nullptr;
  const CurrentSession session;
  if (!session) return nullptr;
  Contents contents;
  for_each_tensor(function.inputs(), [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    for_each_part(tensor, [&](const at::Tensor& part) {
      if (!is_strange(part)) contents.add(part);
    });
  });
  contents.bring_back();
  return nullptr;
}

}  // namespace

void serve_profiler(bool is_on) {
  static std::mutex mutex;
  static std::optional<at::CallbackHandle> handle;
  const std::scoped_lock lock(mutex);
  if (is_on == handle.has_value()) return;
  if (is_on) {
    // One for every thread is called before those for one thread, which a profiler has.
    handle =
        at::addGlobalCallback(at::RecordFunctionCallback(&bring_inputs_back).needsInputs(true));
  } else {
    at::removeCallback(*handle);
    handle.reset();
  }
}

}  // namespace coop::plugin
