#pragma once

#include "core/engine/engine.hpp"

namespace coop {

// Tells of a request when it has been done, or has failed. Must not outlive the Entry.
class Engine::Told {
 public:
  Told(Engine& engine, const EngineRequest& request) : engine_(engine), request_(request) {
    request_.has_failed = true;
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  ~Told() {
    if (engine_.requests_ == nullptr) return;
    const bool is_replays_own =
        request_.kind == EngineRequest::Kind::kAllocate && engine_.is_inside_replay();
    if (!is_replays_own) engine_.requests_->on_request(request_);
  }
  void is_done() noexcept { request_.has_failed = false; }
  void is_done(BlockId block) noexcept {
    request_.block = block;
    is_done();
  }
  void is_done(StorageId storage) noexcept {
    request_.storage = storage;
    is_done();
  }

 private:
  Engine& engine_;
  EngineRequest request_;
};

}  // namespace coop
