#pragma once

// The subcommands of coop-sim, a file each.

#include <functional>

#include "cli/commands/cli11_forward.hpp"

namespace coop::cli {

// What a subcommand does once the whole command line is known to be right; gives the exit code.
using Action = std::function<int()>;

// Each adds its subcommand; `chosen` is set by the one that the command line names.
void add_run(CLI::App& app, Action& chosen);
void add_sweep(CLI::App& app, Action& chosen);
void add_explain(CLI::App& app, Action& chosen);
void add_report(CLI::App& app, Action& chosen);
void add_info(CLI::App& app, Action& chosen);
void add_check(CLI::App& app, Action& chosen);
void add_make(CLI::App& app, Action& chosen);
void add_policies(CLI::App& app, Action& chosen);

}  // namespace coop::cli
