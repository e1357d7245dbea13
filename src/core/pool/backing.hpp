#pragma once

#include <cstddef>

#include "core/base/bytes.hpp"

namespace coop {

// Where a pool's memory comes from: the device, the host, or nowhere (tests and the simulator use
// addresses with nothing behind them; the pool never reads or writes its memory).
class Backing {
 public:
  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  virtual ~Backing() = default;

  // Called once, when the pool is made. The address must be a multiple of 512. Throws on failure.
  virtual std::byte* acquire(Bytes bytes) = 0;
  // Called once, when the pool dies.
  virtual void give_back(std::byte* memory, Bytes bytes) noexcept = 0;
};

// Addresses only.
class FakeBacking final : public Backing {
 public:
  static constexpr std::uintptr_t kBase = 0x10000000;
  std::byte* acquire(Bytes /*bytes*/) override {
    return reinterpret_cast<std::byte*>(kBase);  // NOLINT: an address is all that is wanted
  }
  void give_back(std::byte* /*memory*/, Bytes /*bytes*/) noexcept override {}
};

// Host memory.
class HostBacking final : public Backing {
 public:
  std::byte* acquire(Bytes bytes) override;
  void give_back(std::byte* memory, Bytes bytes) noexcept override;
};

}  // namespace coop
