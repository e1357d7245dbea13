#include "cli/picture/png.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/picture/svg.hpp"
#include "sim/trace/open_file.hpp"
#include "sim/trace/trace_error.hpp"

namespace coop::cli {
namespace {

constexpr double kZoom = 2;
constexpr double kMostPixels = 32000;  // a little less than what cairo, which draws it, can do

// Runs rsvg-convert with this argument from one file to another; whether it was there and did it.
bool convert(const std::string& argument, std::FILE* from, std::FILE* to) {
  std::string program = "rsvg-convert";
  std::string words = argument;
  const std::array<char*, 3> command{program.data(), words.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(from), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(to), STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), &files, nullptr, command.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) == -1) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

bool can_write_png() {
  const sim::File nothing = sim::open_file("/dev/null", "r+");
  return convert("--version", nothing.get(), nothing.get());
}

void write_png(const std::string& path, std::string_view svg, double svg_height) {
  const sim::File from(std::tmpfile());
  if (!from) throw sim::TraceError(path + ": no temporary file: " + std::strerror(errno));
  const bool is_there = std::fwrite(svg.data(), 1, svg.size(), from.get()) == svg.size() &&
                        std::fflush(from.get()) == 0;
  std::rewind(from.get());
  const sim::File to = sim::open_file(path, "wb");
  const double zoom = std::min(kZoom, std::floor(100 * kMostPixels / svg_height) / 100);
  if (is_there && convert("--zoom=" + svg_number(zoom), from.get(), to.get())) return;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  throw sim::TraceError(path + ": rsvg-convert could not draw it");
}

}  // namespace coop::cli
