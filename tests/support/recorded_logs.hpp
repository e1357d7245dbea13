#pragma once

// Logs of real networks: ours, which are in the repository, and the DTR prototype's, which are not.

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace coop::testing {

inline std::filesystem::path repository() { return COOP_REPOSITORY; }

inline std::filesystem::path h200_log(const std::string& name) {
  return repository() / "tests/data/h200" / (name + ".log.gz");
}

inline std::filesystem::path dtr_logs() {
  const char* folder = std::getenv("COOP_DTR_LOGS");
  return folder != nullptr ? std::filesystem::path(folder) : repository() / "../shared/traces/dtr";
}

// The log whose file name begins so, or nothing.
inline std::optional<std::filesystem::path> dtr_log(const std::string& name) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(dtr_logs(), none)) {
    const std::string file = entry.path().filename().string();
    const bool is_log = file.ends_with(".log") || file.ends_with(".log.gz");
    if (is_log && file.starts_with(name + "-")) return entry.path();
  }
  return std::nullopt;
}

}  // namespace coop::testing

// Ends the test, saying why, where the logs are not there.
#define COOP_SKIP_WITHOUT(log)                                                        \
  if (!(log))                                                                         \
  GTEST_SKIP() << "no such log of the DTR prototype in " << coop::testing::dtr_logs() \
               << "; COOP_DTR_LOGS names the folder"
