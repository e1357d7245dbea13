#include "core/base/bytes.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

#include "core/base/errors.hpp"

namespace coop {
namespace {

struct Unit {
  std::string_view name;
  Bytes bytes;
};

constexpr std::array<Unit, 9> kUnits{{{"B", 1},
                                      {"KB", 1'000},
                                      {"MB", 1'000'000},
                                      {"GB", 1'000'000'000},
                                      {"TB", 1'000'000'000'000},
                                      {"KiB", Bytes{1} << 10U},
                                      {"MiB", Bytes{1} << 20U},
                                      {"GiB", Bytes{1} << 30U},
                                      {"TiB", Bytes{1} << 40U}}};

[[noreturn]] void reject(std::string_view text, const std::string& why) {
  throw InvalidArgument("'" + std::string(text) + "' is not an amount of memory: " + why +
                        "; write for example 8GiB, 512MB or a number of bytes");
}

Bytes unit_bytes(std::string_view text, std::string_view unit) {
  if (unit.empty()) return 1;
  for (const Unit& known : kUnits) {
    if (known.name == unit) return known.bytes;
  }
  reject(text, "unknown unit '" + std::string(unit) +
                   "' (B, KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024)");
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& rest) {
  std::size_t n = 0;
  while (n < rest.size() && is_digit(rest[n])) ++n;
  const std::string_view digits = rest.substr(0, n);
  rest.remove_prefix(n);
  return digits;
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  std::string_view rest = text;
  const std::string_view whole = take_digits(rest);
  if (whole.empty()) reject(text, "it must begin with a digit");
  std::string_view fraction;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = take_digits(rest);
    if (fraction.empty()) reject(text, "a digit must follow the point");
    if (fraction.size() > 9) reject(text, "more than nine digits after the point");
  }
  if (rest.size() > 1 && rest.front() == ' ') rest.remove_prefix(1);
  const Bytes unit = unit_bytes(text, rest);
  if (unit == 1 && !fraction.empty()) reject(text, "bytes come whole");

  constexpr Bytes kMost = std::numeric_limits<Bytes>::max();
  Bytes count = 0;
  const auto parsed = std::from_chars(whole.data(), whole.data() + whole.size(), count);
  if (parsed.ec != std::errc() || count > kMost / unit) reject(text, "too large for 64 bits");
  const Bytes bytes = count * unit;

  Bytes part = 0;  // fraction * unit, in integers: digits / 10^n * unit
  Bytes scale = 1;
  for (const char digit : fraction) {
    part = part * 10 + static_cast<Bytes>(digit - '0');
    scale *= 10;
  }
  // unit <= 2^40 and part < 10^9 < 2^30 would overflow together, so divide in two steps.
  const Bytes tail = unit / scale * part + unit % scale * part / scale;
  if (bytes > kMost - tail) reject(text, "too large for 64 bits");
  return bytes + tail;
}

std::string format_bytes(Bytes bytes) {
  if (bytes < 1_KiB) return std::to_string(bytes) + " B";
  constexpr std::array<std::string_view, 4> kNames{"KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes) / 1024.0;
  std::size_t name = 0;
  // 1023.95 would be printed as 1024.0: move on to the next unit before that.
  while (amount >= 1023.95 && name + 1 < kNames.size()) {
    amount /= 1024.0;
    ++name;
  }
  std::array<char, 32> text{};
  const bool is_whole = amount == static_cast<double>(static_cast<Bytes>(amount));
  std::snprintf(text.data(), text.size(), is_whole ? "%.0f %s" : "%.1f %s", amount,
                kNames[name].data());
  return text.data();
}

}  // namespace coop
