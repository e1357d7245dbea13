#include "cli/storage_names.hpp"

namespace coop::cli {

StorageNames::StorageNames(const sim::Trace& trace)
    : trace_(trace), ops_(trace.storages().size(), sim::kNoName) {
  for (std::uint32_t i = 0; i < trace.call_count(); ++i) {
    const sim::TraceCall call = trace.call(sim::CallNumber{i});
    for (std::uint32_t k = 0; k < call.outputs; ++k) ops_[sim::index_of(call.output(k))] = call.op;
  }
}

std::string StorageNames::name(sim::StorageNumber storage) const {
  const sim::TraceStorage& about = trace_.storage(storage);
  const std::string& own = trace_.name(about.name);
  const std::string& op = trace_.name(ops_[sim::index_of(storage)]);
  if (!about.is_output) return own.empty() ? "from outside" : own;
  return own.empty() ? op : own + " of " + op;
}

std::string StorageNames::name_of_token(Token token) const {
  return token == 0 ? "" : name(sim::StorageNumber{static_cast<std::uint32_t>(token - 1)});
}

}  // namespace coop::cli
