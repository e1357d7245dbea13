#pragma once

#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"

namespace coop::cli {

// A subcommand whose options live as long as its action: `declare(subcommand, options)` says what they
// are, `act(options)` is the action.
template <typename Options, typename Declare, typename Act>
void add_subcommand(CLI::App& app, Action& chosen, const char* name, const char* about,
                    const char* example, Declare&& declare, Act act) {
  auto options = std::make_shared<Options>();
  CLI::App* subcommand = app.add_subcommand(name, about);
  std::forward<Declare>(declare)(*subcommand, *options);
  subcommand->footer(std::string("Example:\n  ") + example);
  subcommand->callback(
      [&chosen, options, act] { chosen = [options, act] { return act(*options); }; });
}

}  // namespace coop::cli
