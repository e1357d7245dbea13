#include "plugin/warnings.hpp"

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include <ATen/core/stack.h>

namespace coop::plugin {
namespace {

bool is_first(const char* warning, const std::string& about) {
  static std::mutex mutex;
  static auto& warned = *new std::set<std::pair<const char*, std::string>>;
  const std::scoped_lock lock(mutex);
  return warned.emplace(warning, about).second;
}

// Python has what is to be done (_warnings.py). A program without it is not told.
template <typename... Facts>
void warn(const char* warning, Facts&&... facts) {
  const auto found = c10::Dispatcher::singleton().findOp({warning, ""});
  if (!found) return;
  torch::jit::Stack stack{std::forward<Facts>(facts)...};
  found->callBoxed(&stack);
}

void warn_once_of(const char* warning, const std::string& op, std::size_t bytes) {
  if (is_first(warning, op)) warn(warning, op, static_cast<std::int64_t>(bytes));
}

}  // namespace

void warn_of_unknown(const c10::OperatorHandle& op, std::size_t bytes) {
  // Collectives and what FSDP does around them are never run again, and what was compiled (_compiled.py) cannot be.
  const std::string& name = op.schema().name();
  const bool can_be_registered = name.find("c10d") == std::string::npos &&
                                 !name.starts_with("fsdp::") &&
                                 !name.starts_with("coop_compiled::");
  if (bytes > 0 && can_be_registered) warn_once_of("coop::warn_of_unknown", name, bytes);
}

void warn_of_unseen_write(const std::string& made_by, std::size_t bytes) {
  warn_once_of("coop::warn_of_unseen_write", made_by, bytes);
}

void warn_of_slowdown(double slowdown, std::size_t budget, const std::string& advice) {
  if (!is_first("coop::warn_of_slowdown", std::to_string(budget))) return;
  warn("coop::warn_of_slowdown", slowdown, static_cast<std::int64_t>(budget), advice);
}

}  // namespace coop::plugin
