#include "plugin/operator_facts.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include <ATen/core/enum_tag.h>

#include "plugin/registered_operators.hpp"

namespace coop::plugin {
namespace {

using Kind = OperatorFacts::Kind;

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Changes the size of a storage, or which storage a tensor has: neither a view nor a computation.
bool changes_storage(std::string_view name) {
  return name.starts_with("resize") || name.starts_with("set_") || name == "_resize_output_";
}

// Their results differ from run to run, or they write what their schema does not name
// (seen when every operator of op_db was run again).
constexpr std::array<std::string_view, 10> kDoNotRepeat = {
    "_ctc_loss",
    "_cudnn_ctc_loss",
    "linalg_lstsq",
    "mkldnn_rnn_layer",
    "mkldnn_rnn_layer_backward",
    "_cudnn_rnn",
    "_cudnn_rnn_backward",
    "batch_norm_update_stats",
    "batch_norm_gather_stats",
    "batch_norm_gather_stats_with_counts",
};

// Fill a tensor with random numbers, whatever it held. `zero_`, `fill_` and `copy_` overwrite as well,
// and are not here: a buffer that was zeroed is often about to be filled by code that we do not see,
// and must stay what it is; one that was filled with random numbers has got what it is for.
constexpr std::array<std::string_view, 8> kRandomFills = {
    "bernoulli_", "normal_",     "uniform_", "exponential_",
    "random_",    "log_normal_", "cauchy_",  "geometric_",
};

// Arguments that an operator writes and does not name as written.
struct HiddenWrite {
  std::string_view name;
  std::string_view argument;
};
constexpr std::array<HiddenWrite, 9> kHiddenWrites = {{
    {.name = "batch_norm_update_stats", .argument = "running_mean"},
    {.name = "batch_norm_update_stats", .argument = "running_var"},
    {.name = "batch_norm_gather_stats", .argument = "running_mean"},
    {.name = "batch_norm_gather_stats", .argument = "running_var"},
    {.name = "batch_norm_gather_stats_with_counts", .argument = "running_mean"},
    {.name = "batch_norm_gather_stats_with_counts", .argument = "running_var"},
    {.name = "mkldnn_rnn_layer_backward", .argument = "workspace"},
    {.name = "_cudnn_rnn", .argument = "dropout_state"},
    {.name = "_cudnn_rnn_backward", .argument = "reserve"},
}};

bool is_hidden_write(std::string_view name, const c10::Argument& argument) {
  return std::any_of(kHiddenWrites.begin(), kHiddenWrites.end(), [&](const HiddenWrite& it) {
    return it.name == name && it.argument == argument.name();
  });
}

constexpr std::array<std::string_view, 12> kMultiplyMatrices = {
    "mm",   "addmm",  "_addmm_activation", "bmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "ger",
    "addr", "linear",
};
constexpr std::array<std::string_view, 2> kBatchNorms = {"native_batch_norm", "cudnn_batch_norm"};

bool has_tensor(const c10::Argument& argument) {
  const std::string type = argument.type()->annotation_str();
  return type.find("Tensor") != std::string::npos;
}

bool is_factory(const c10::FunctionSchema& schema, std::string_view name) {
  const auto& arguments = schema.arguments();
  return std::none_of(arguments.begin(), arguments.end(), has_tensor) ||
         name.starts_with("empty") || name.starts_with("new_") || name.ends_with("_like");
}

bool is_write(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Everything it returns looks at an argument's memory, and nothing is written.
bool is_view(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !schema.is_mutable() && !returns.empty() &&
         std::all_of(returns.begin(), returns.end(),
                     [](const c10::Argument& it) { return it.alias_info() != nullptr; });
}

Kind kind_of(const c10::OperatorHandle& op, std::string_view space, std::string_view name) {
  if (space == "coop" || space == "profiler") return Kind::kOurs;
  if (space != "aten") return Kind::kUnknown;
  // Arrives whole only in inference mode, and may then read, write or view. (_fused_rms_norm is made of others
  // on the CPU, and has a kernel of its own on CUDA.)
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA)) {
    return Kind::kComposite;
  }
  if (changes_storage(name)) return Kind::kOrdinary;
  if (is_view(op.schema()) || op.hasTag(at::Tag::inplace_view)) return Kind::kView;
  return Kind::kOrdinary;
}

Taint taint_of(const c10::OperatorHandle& op, std::string_view name, bool is_factory,
               bool has_out) {
  if (is_factory) return Taint::kFactory;
  if (has_out) return Taint::kOut;
  if (changes_storage(name)) return Taint::kChangesStorage;
  if (op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output)) {
    return Taint::kDynamicShape;
  }
  const bool is_unsure = op.hasTag(at::Tag::maybe_aliasing_or_mutating) ||
                         op.hasTag(at::Tag::nondeterministic_bitwise) ||
                         is_one_of(name, kDoNotRepeat);
  return is_unsure ? Taint::kDoesNotRepeat : Taint::kNone;
}

std::unique_ptr<OperatorFacts> study(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string_view full_name = schema.name();
  const std::size_t colons = full_name.find("::");
  const std::string_view space = full_name.substr(0, colons);
  const std::string_view name = full_name.substr(colons + 2);

  auto facts = std::make_unique<OperatorFacts>();
  facts->kind = kind_of(op, space, name);
  facts->arguments = static_cast<std::uint32_t>(schema.arguments().size());
  facts->results = static_cast<std::uint32_t>(schema.returns().size());
  bool has_out = false;
  for (const c10::Argument& argument : schema.arguments()) {
    facts->writes.push_back(is_write(argument) || is_hidden_write(name, argument));
    has_out = has_out || (argument.is_out() || (argument.kwarg_only() && is_write(argument)));
  }
  for (const RawReader& it : raw_readers()) {
    if (schema.name() == it.name && schema.overload_name() == it.overload) facts->raw_reader = &it;
  }
  if (facts->kind != Kind::kOrdinary) return facts;

  const bool makes_memory = is_factory(schema, name);
  facts->is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  facts->taint = taint_of(op, name, makes_memory, has_out);
  facts->is_replayable = facts->taint == Taint::kNone;
  facts->has_template = makes_memory;
  facts->is_overwriting = is_one_of(name, kRandomFills);
  facts->is_buffer = name == "empty_strided";
  facts->is_copy = name == "clone" || name == "cat";
  facts->multiplies_matrices = is_one_of(name, kMultiplyMatrices);
  facts->may_be_unheard =
      !facts->is_buffer && !changes_storage(name) && facts->raw_reader == nullptr;
  facts->may_be_light = facts->may_be_unheard && !(facts->is_random && facts->is_replayable);
  if (is_one_of(name, kBatchNorms)) {
    facts->side_effects = {3, 4};  // running_mean, running_var
    facts->side_effects_if = 5;    // training
  }
  const bool is_known = facts->is_replayable || facts->taint == Taint::kFactory ||
                        facts->taint == Taint::kDynamicShape;
  facts->only_makes = is_known && !facts->is_random &&
                      facts->side_effects_if == OperatorFacts::kNone &&
                      std::none_of(facts->writes.begin(), facts->writes.end(), std::identity());
  return facts;
}

// Operators of extensions can be unregistered, and their place be used again: of those nothing is
// remembered but that they are unknown.
const OperatorFacts& unknown_facts() {
  static const OperatorFacts kUnknown;
  return kUnknown;
}

struct Found {
  const OperatorFacts& facts;
  bool is_for_good = true;  // it will never be another one's, nor say something else
};

Found look_up(const c10::OperatorHandle& op) {
  static std::shared_mutex mutex;
  static auto& table =
      *new std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OperatorFacts>>;
  const c10::FunctionSchema* schema = &op.schema();
  {
    const std::shared_lock lock(mutex);
    const auto found = table.find(schema);
    if (found != table.end()) return {*found->second};
  }
  std::unique_ptr<OperatorFacts> facts = study(op);
  if (facts->kind == Kind::kUnknown) {
    const OperatorFacts* registered = registered_facts_of(op);
    return {registered != nullptr ? *registered : unknown_facts(), /*is_for_good=*/false};
  }
  const std::unique_lock lock(mutex);
  return {*table.try_emplace(schema, std::move(facts)).first->second};
}

}  // namespace

// What this thread has looked up lies at hand.
const OperatorFacts& facts_of(const c10::OperatorHandle& op) {
  struct Known {
    const c10::FunctionSchema* schema = nullptr;
    const OperatorFacts* facts = nullptr;
  };
  thread_local std::array<Known, 256> known;
  const c10::FunctionSchema* schema = &op.schema();
  Known& place = known[reinterpret_cast<std::uintptr_t>(schema) / 64 % known.size()];
  if (place.schema == schema) return *place.facts;
  const Found found = look_up(op);
  if (found.is_for_good) place = {schema, &found.facts};
  return found.facts;
}

}  // namespace coop::plugin
