#include "plugin/budget_size.hpp"

#include <charconv>

#include "core/base/errors.hpp"

namespace coop::plugin {
namespace {

Bytes share_of(Bytes whole, std::string_view text) {
  double percent = 0;
  std::string_view number = text.substr(0, text.size() - 1);
  if (number.ends_with(' ')) number.remove_suffix(1);  // as in "8 GiB"
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  // Written so that NaN is refused.
  if (!is_number || !(percent > 0 && percent <= 100)) {
    throw InvalidArgument("'" + std::string(text) +
                          "' is not a share of the device's memory: write a number above 0 and up "
                          "to 100, for example 50%");
  }
  return static_cast<Bytes>(static_cast<double>(whole) * percent / 100);
}

}  // namespace

Bytes budget_bytes(std::string_view text, Bytes whole) {
  if (text.ends_with('%')) return share_of(whole, text);
  const Bytes bytes = parse_bytes(text);
  if (bytes == 0) {
    throw InvalidArgument("a budget of 0 bytes: write for example 8GiB, 50% or a number of bytes");
  }
  return bytes;
}

std::optional<std::string> size_of_at_least(Bytes bytes, Bytes most) {
  constexpr Bytes kMiB = 1_MiB;
  constexpr Bytes kTenths = 10;
  const Bytes mib = bytes / kMiB + (bytes % kMiB != 0 ? 1 : 0);
  if (mib > most / kMiB) return std::nullopt;
  if (mib % 1024 == 0) return std::to_string(mib / 1024) + "GiB";
  // A tenth of a GiB is at most a hundredth of these.
  const Bytes tenths = (bytes * kTenths + 1_GiB - 1) / 1_GiB;
  if (bytes < 10_GiB || tenths * 1_GiB / kTenths > most) return std::to_string(mib) + "MiB";
  std::string text = std::to_string(tenths / kTenths);
  if (tenths % kTenths != 0) text.append(".").append(std::to_string(tenths % kTenths));
  return text + "GiB";
}

}  // namespace coop::plugin
