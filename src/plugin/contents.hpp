#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "plugin/session.hpp"

namespace coop::plugin {

// Keeps the contents of storages in place while it lives, whichever budgets they are of. For a thread that is inside.
class Contents {
 public:
  Contents() = default;
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    for (auto& [session, call] : calls_) {
      session->engine().abort_call(call);  // nothing that it was to change
    }
    for (const Held& it : held_) {
      if (let_go(*it.record)) it.record->session.release(it.record);
    }
  }

  void add(const at::Tensor& tensor) {
    auto impl =
        c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(tensor.storage().unsafeGetStorageImpl());
    Session* session = Session::active_on(impl->device());
    StorageRecord* record = session != nullptr ? session->record_of(*impl) : nullptr;
    if (record == nullptr) return;
    held_.push_back({.impl = std::move(impl), .record = record});
    ++record->users;
  }
  void bring_back() {
    Session::for_each_active([&](Session& session) {
      std::vector<StorageId> reads;
      for (const Held& it : held_) {
        if (&it.record->session == &session) reads.push_back(it.record->id);
      }
      if (reads.empty()) return;
      calls_.reserve(calls_.size() + 1);
      calls_.emplace_back(&session, session.engine().begin_call(reads, {}));
    });
    for (const Held& it : held_) it.record->session.hand_over(*it.record);
  }

 private:
  struct Held {
    c10::intrusive_ptr<c10::StorageImpl> impl;
    StorageRecord* record = nullptr;
  };
  std::vector<Held> held_;
  std::vector<std::pair<Session*, RunningCall>> calls_;
};

}  // namespace coop::plugin
