#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "plugin/session.hpp"

namespace coop::plugin {

// Keeps the contents of storages in place while it lives.
class Contents {
 public:
  explicit Contents(Session& session) : session_(session) {}
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    session_.engine().abort_call(call_);  // nothing that it was to change
    for (const Held& it : held_) {
      if (let_go(*it.record)) session_.release(it.record);
    }
  }

  void add(const at::Tensor& tensor) {
    auto impl =
        c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(tensor.storage().unsafeGetStorageImpl());
    StorageRecord* record = session_.record_of(*impl);
    if (record == nullptr) return;
    held_.push_back({.impl = std::move(impl), .record = record});
    ++record->users;
  }
  void bring_back() {
    std::vector<StorageId> reads;
    for (const Held& it : held_) reads.push_back(it.record->id);
    call_ = session_.engine().begin_call(reads, {});
    for (const Held& it : held_) session_.hand_over(*it.record);
  }

 private:
  struct Held {
    c10::intrusive_ptr<c10::StorageImpl> impl;
    StorageRecord* record = nullptr;
  };
  Session& session_;
  std::vector<Held> held_;
  RunningCall call_;
};

}  // namespace coop::plugin
