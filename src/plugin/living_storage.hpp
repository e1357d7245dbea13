#pragma once

// A storage that lives, and its record, which is not released while this is there.
//
// It is found from the record and not from the storage: another thread may be giving that other memory at this moment
// (`resize_`), and its DataPtr is nobody's to read then.

#include <optional>
#include <utility>
#include <vector>

#include <c10/core/StorageImpl.h>

#include "plugin/storage_record.hpp"

namespace coop::plugin {

class LivingStorage {
 public:
  // By whoever keeps the record from being released: under the session's lock. Nothing is held yet.
  explicit LivingStorage(StorageRecord& record) : weak_(use(record)) {
    if (weak_) record_ = &record;
  }
  LivingStorage(LivingStorage&& other) noexcept
      : weak_(std::move(other.weak_)), impl_(std::move(other.impl_)), record_(other.take()) {}
  LivingStorage& operator=(LivingStorage&& other) noexcept {
    std::swap(weak_, other.weak_);
    std::swap(impl_, other.impl_);
    std::swap(record_, other.record_);
    return *this;
  }
  LivingStorage(const LivingStorage&) = delete;
  LivingStorage& operator=(const LivingStorage&) = delete;
  ~LivingStorage();

  // Takes hold of the storage, which may need Python: under no lock. False if it is dead.
  [[nodiscard]] bool hold() {
    if (weak_) impl_ = weak_->lock();
    return impl_.defined();
  }
  [[nodiscard]] c10::StorageImpl& impl() const { return *impl_; }
  [[nodiscard]] StorageRecord& record() const { return *record_; }
  // For whoever has made the storage leave it, to be released or forgotten.
  StorageRecord* take() { return std::exchange(record_, nullptr); }

 private:
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> weak_;
  c10::intrusive_ptr<c10::StorageImpl> impl_;
  StorageRecord* record_ = nullptr;
};

using LivingStorages = std::vector<LivingStorage>;

}  // namespace coop::plugin
