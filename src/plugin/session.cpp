#include "plugin/session.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <pthread.h>

#include "core/base/check.hpp"
#include "plugin/cpu_allocator.hpp"
#include "plugin/dispatch_key.hpp"

namespace coop::plugin {
namespace {

std::atomic<Session*> active_session = nullptr;
// Set in a forked child: it has the key and the tables, but the pool is the parent's.
std::atomic<bool> is_forked = false;

// The active one, and those that something still lives in.
std::mutex sessions_mutex;
std::vector<std::unique_ptr<Session>>& sessions() {
  static auto& all = *new std::vector<std::unique_ptr<Session>>;  // storages may outlive main()
  return all;
}

// Under stress every operator makes again whatever it reads: slow, and meant to be.
EngineOptions engine_options(const SessionOptions& options) {
  EngineOptions engine;
  if (options.stress) engine.most_slowdown = 0;
  return engine;
}

}  // namespace

// --- the life of a session ---

std::byte* PoolMemory::acquire(Bytes bytes) {
  begin_ = host_.acquire(bytes);
  end_ = begin_ + bytes;
  return begin_;
}

void PoolMemory::give_back(std::byte* memory, Bytes bytes) noexcept {
  host_.give_back(memory, bytes);
}

bool PoolMemory::contains(const void* data) const {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return at >= reinterpret_cast<std::uintptr_t>(begin_) &&
         at < reinterpret_cast<std::uintptr_t>(end_);
}

Session::Session(const SessionOptions& options)
    : options_(options),
      policy_(make_policy(options.policy)),
      pool_({.bytes = options.bytes,
             .fit = policy_->traits().fit,
             .small_limit = options.small_limit},
            memory_),
      world_(*this),
      engine_(pool_, *policy_, world_, engine_options(options)) {}

Session* Session::active() {
  return is_forked.load(std::memory_order_relaxed) ? nullptr
                                                   : active_session.load(std::memory_order_acquire);
}

bool Session::is_in_forked_child() { return is_forked.load(std::memory_order_relaxed); }

Session* Session::current() { return is_thread_in_scope() ? active() : nullptr; }

void Session::begin(const SessionOptions& options) {
  TORCH_CHECK(active_session == nullptr, "coop: a budget inside a budget is not possible yet");
  static const int watches_forks = pthread_atfork(nullptr, nullptr, [] { is_forked.store(true); });
  TORCH_CHECK(watches_forks == 0 && !is_forked, "coop: no budget in a forked process");
  install_cpu_allocator();
  reap();
  auto session = with_torch_errors([&] { return std::make_unique<Session>(options); });
  const std::scoped_lock lock(sessions_mutex);
  sessions().push_back(std::move(session));
  active_session = sessions().back().get();
}

void Session::end() {
  Session* session = active();
  TORCH_CHECK(session != nullptr, "coop: there is no budget to end");
  // Whatever happens, the scope is over.
  try {
    with_torch_errors([&] { session->evacuate(); });
  } catch (...) {
    active_session = nullptr;
    throw;
  }
  active_session = nullptr;
  reap();
}

// Sessions that are over, and in which nothing lives any more.
void Session::reap() {
  std::vector<std::unique_ptr<Session>> dead;
  const std::scoped_lock lock(sessions_mutex);
  std::erase_if(sessions(), [&](std::unique_ptr<Session>& it) {
    const bool is_dead = it.get() != active_session && it->is_empty();
    if (is_dead) dead.push_back(std::move(it));
    return is_dead;
  });
}

bool Session::is_empty() {
  const std::scoped_lock lock(mutex_);
  return first_ == nullptr && raw_.empty();
}

// --- memory ---

c10::DataPtr Session::allocate(std::size_t bytes) {
  const std::uint64_t began = steady_clock_ns();
  const BlockId block = with_torch_errors([&] {
    try {
      return engine_.allocate(bytes, this_thread.expected_cost);
    } catch (const OutOfMemory& error) {
      const std::scoped_lock lock(mutex_);
      last_out_of_memory_ = error.report();
      throw;
    }
  });
  void* data = engine_.address(block);
  const Bytes held = engine_.held_bytes();
  try {
    const std::scoped_lock lock(mutex_);
    raw_.emplace(data, block);
    peak_held_ = std::max(peak_held_, held);
  } catch (...) {
    engine_.free(block);
    throw;
  }
  this_thread.memory_ns += steady_clock_ns() - began;
  return {data, data, &free_raw_memory, c10::Device(c10::kCPU)};
}

bool Session::free_raw(void* data) noexcept {
  if (!memory_.contains(data)) return false;
  BlockId block;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = raw_.find(data);
    COOP_CHECK(found != raw_.end());
    block = found->second;
    raw_.erase(found);
  }
  engine_.free(block);
  return true;
}

bool Session::free_anywhere(void* data) noexcept {
  Session* active_one = active_session.load(std::memory_order_acquire);
  if (is_forked) return active_one != nullptr && active_one->memory_.contains(data);
  if (active_one != nullptr && active_one->free_raw(data)) return true;
  const std::scoped_lock lock(sessions_mutex);
  return std::any_of(sessions().begin(), sessions().end(),
                     [&](const auto& session) { return session->free_raw(data); });
}

bool Session::is_raw(c10::StorageImpl& impl) const {
  const c10::DataPtr& data = impl._mutable_data_ptr_no_checks();
  return data.get_deleter() == &free_raw_memory && memory_.contains(data.get());
}

BlockId Session::raw_block_of(c10::StorageImpl& impl) {
  const std::scoped_lock lock(mutex_);
  const auto found = raw_.find(impl._mutable_data_ptr_no_checks().get());
  if (found == raw_.end()) throw InternalError("a storage has memory that was never handed out");
  return found->second;
}

void Session::forget_raw(void* data) noexcept {
  const std::scoped_lock lock(mutex_);
  raw_.erase(data);
}

BlockId Session::take_raw(c10::StorageImpl& impl) {
  if (!is_raw(impl)) throw InternalError("an operator that was run again made no new storage");
  const BlockId block = raw_block_of(impl);
  forget_raw(impl._mutable_data_ptr_no_checks().release_context());
  return block;
}

MemoryReport Session::last_out_of_memory() const {
  const std::scoped_lock lock(mutex_);
  return last_out_of_memory_;
}

void* Session::address_of(BlockId block) const {
  void* foreign = foreign_address_of(block);
  return foreign != nullptr ? foreign : engine_.address(block);
}

void* Session::address_under_lock(BlockId block) const {
  void* foreign = foreign_address_of(block);
  return foreign != nullptr ? foreign : pool_.address(block);
}

// Null if the block stands for nothing outside the pool.
void* Session::foreign_address_of(BlockId block) const {
  const std::scoped_lock lock(mutex_);
  const StorageRecord* foreign =
      block.index() < stand_ins_.size() ? stand_ins_[block.index()] : nullptr;
  if (foreign == nullptr || foreign->block != block) return nullptr;
  void* data = foreign->impl->_mutable_data_ptr_no_checks().get();
  if (data == nullptr) throw InternalError("a storage from outside the pool lost its memory");
  return data;
}

void Session::between_operators() {
  if (options_.stress) engine_.evict_all();
}

Session::Stats Session::stats() {
  const std::scoped_lock lock(mutex_);
  return {.peak_held = peak_held_,
          .operators = operators_,
          .foreign = foreign_.size(),
          .records = records_,
          .raw = raw_.size()};
}

}  // namespace coop::plugin
