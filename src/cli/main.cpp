// coop-sim: what would a recorded program cost inside a smaller budget?
//
// Exit codes: 0 done (a program that does not fit is a result), 1 the simulator does not do what was
// recorded (check), 2 bad input, 3 a bug in coop, 130 interrupted.

#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/text/format.hpp"
#include "core/base/errors.hpp"
#include "core/base/words.hpp"

namespace coop::cli {
namespace {

constexpr int kBadInput = 2;
constexpr int kBug = 3;

constexpr std::size_t kColumns = 22;  // for names, so that 80 are enough for what they mean

constexpr const char* kExamples =
    R"(Examples (`coop-sim COMMAND --help` and docs/simulator.md say more):
  coop-sim make transformer --seed 7 -o step.trace.gz
  coop-sim info step.trace.gz
  coop-sim run step.trace.gz --policy coop --ratio .5 --map map.html
  coop-sim sweep step.trace.gz --policies coop,dtr --ratios .8,.6,.4
  coop-sim explain step.trace.gz --policy coop --ratio .5)";

std::string complaint_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  const bool has_command = !app.get_subcommands().empty();
  if (has_command || unknown.empty() || unknown.front().starts_with('-')) return error.what();
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  return "there is no command '" + unknown.front() + "'; " + what_was_meant(unknown.front(), known);
}

int run(int argc, char** argv) {
  CLI::App app("Runs recorded programs inside smaller budgets, on memory that is not there.",
               "coop-sim");
  app.set_version_flag("--version", "coop-sim " COOP_VERSION);
  app.require_subcommand(0, 1);  // none is refused below, after words that are no command
  app.footer(kExamples);
  app.get_formatter()->column_width(kColumns);  // of the subcommands, too
  Action chosen;
  add_run(app, chosen);
  add_sweep(app, chosen);
  add_explain(app, chosen);
  add_report(app, chosen);
  add_info(app, chosen);
  add_check(app, chosen);
  add_make(app, chosen);
  add_policies(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      throw InvalidArgument(complaint_of(app, error) + " (coop-sim --help)");
    }
    std::ostringstream text;  // --help, --version
    app.exit(error, text, text);
    print(text.str());
    return 0;
  }
  if (!chosen) throw InvalidArgument("which command? coop-sim --help lists them");
  return chosen();
}

}  // namespace
}  // namespace coop::cli

int main(int argc, char** argv) {
  try {
    return coop::cli::run(argc, argv);
  } catch (const coop::InternalError& error) {
    std::fprintf(stderr, "coop-sim: this is a bug in coop: %s\n", error.what());
    return coop::cli::kBug;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "coop-sim: error: this machine has not enough memory for it\n");
    return coop::cli::kBadInput;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coop-sim: error: %s\n", error.what());
    return coop::cli::kBadInput;
  }
}
