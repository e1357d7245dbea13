// coop-sim policies: what --policy may be.

#include <string>
#include <vector>

#include "cli/commands/subcommand.hpp"
#include "cli/text/format.hpp"
#include "cli/text/json.hpp"
#include "cli/text/table.hpp"
#include "core/policy/policy.hpp"

namespace coop::cli {
namespace {

struct PoliciesOptions {
  bool is_json = false;
};

int list_policies(const PoliciesOptions& options) {
  Table table;
  table.set_last_left();
  JsonWriter json;
  json.begin_array();
  std::vector<PolicyTraits> all = known_policies();
  const std::vector<PolicyTraits> ablations = known_ablations();
  all.insert(all.end(), ablations.begin(), ablations.end());
  for (const PolicyTraits& traits : all) {
    const bool needs_addresses = make_policy(traits.name)->needs_addresses();
    table.add_row({std::string(traits.name), std::string(traits.summary)});
    json.begin_object();
    json.field("name", traits.name);
    json.field("summary", traits.summary);
    json.field("needs_addresses", needs_addresses);
    json.end_object();
  }
  json.end_array();
  print(options.is_json ? json.finish() : table.text());
  return 0;
}

}  // namespace

void add_policies(CLI::App& app, Action& chosen) {
  add_subcommand<PoliciesOptions>(
      app, chosen, "policies", "The policies there are.", "coop-sim policies",
      [](CLI::App& policies, PoliciesOptions& options) {
        policies.add_flag("--json", options.is_json, "for programs");
      },
      list_policies);
}

}  // namespace coop::cli
