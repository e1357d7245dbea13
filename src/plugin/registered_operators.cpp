#include "plugin/registered_operators.hpp"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/enum_tag.h>
#include <c10/util/Exception.h>

namespace coop::plugin {
namespace {

struct Registration {
  bool is_random = false;
  // Made when it is first called. An operator may be defined anew, with another schema; whoever uses the
  // old facts at that moment still may.
  const c10::FunctionSchema* schema = nullptr;
  std::vector<std::unique_ptr<OperatorFacts>> facts;
};

std::shared_mutex registered_mutex;
std::unordered_map<c10::OperatorName, Registration>& registrations() {
  static auto& all = *new std::unordered_map<c10::OperatorName, Registration>;
  return all;
}

std::unique_ptr<OperatorFacts> study(const c10::OperatorHandle& op, bool is_random) {
  auto facts = std::make_unique<OperatorFacts>();
  facts->kind = OperatorFacts::Kind::kOrdinary;
  facts->is_replayable = true;
  facts->is_registered = true;
  facts->is_random = is_random || op.hasTag(at::Tag::nondeterministic_seeded);
  for (const c10::Argument& argument : op.schema().arguments()) {
    facts->writes.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
  }
  return facts;
}

std::vector<c10::OperatorName> overloads_of(const std::string& name) {
  const std::size_t point = name.find('.');
  std::vector<c10::OperatorName> found;
  for (const c10::OperatorName& it : c10::Dispatcher::singleton().getAllOpNames()) {
    const bool is_it = point == std::string::npos ? it.name == name : toString(it) == name;
    if (is_it) found.push_back(it);
  }
  return found;
}

}  // namespace

void register_operator(const std::string& name, bool is_random) {
  TORCH_CHECK_VALUE(!name.starts_with("aten::") && !name.starts_with("coop::"), "coop: ", name,
                    " is PyTorch's own, and known: nothing is to be registered");
  TORCH_CHECK_VALUE(!name.starts_with("coop_compiled::"),
                    "coop: what torch.compile made cannot be run again by coop");
  const auto overloads = overloads_of(name);
  TORCH_CHECK_VALUE(!overloads.empty(), "coop: there is no operator '", name,
                    "'. Names are like 'myspace::myop' or 'myspace::myop.overload', and the "
                    "operator must be defined before it is registered");
  const std::unique_lock lock(registered_mutex);
  for (const c10::OperatorName& it : overloads) {
    Registration& registration = registrations()[it];
    registration.is_random = is_random;
    registration.schema = nullptr;
  }
}

const OperatorFacts* registered_facts_of(const c10::OperatorHandle& op) {
  {
    const std::shared_lock lock(registered_mutex);
    const auto found = registrations().find(op.operator_name());
    if (found == registrations().end()) return nullptr;
    if (found->second.schema == &op.schema()) return found->second.facts.back().get();
  }
  const std::unique_lock lock(registered_mutex);
  Registration& registration = registrations()[op.operator_name()];
  registration.facts.push_back(study(op, registration.is_random));
  registration.schema = &op.schema();
  return registration.facts.back().get();
}

}  // namespace coop::plugin
