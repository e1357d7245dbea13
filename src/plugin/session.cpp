#include "plugin/session.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
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
std::vector<std::shared_ptr<Session>>& sessions() {
  static auto& all = *new std::vector<std::shared_ptr<Session>>;  // storages may outlive main()
  return all;
}

// Under stress every operator makes again whatever it reads: slow, and meant to be.
EngineOptions engine_options(const SessionOptions& options) {
  EngineOptions engine;
  if (options.stress) engine.most_slowdown = 0;
  return engine;
}

// Threads with a CurrentSession; and whether the session waits for them to end.
std::atomic<std::uint32_t> threads_inside = 0;
std::atomic<bool> is_ending = false;

// A fork copies the lock as it is, but not the thread that holds it.
bool watch_forks() {
  const auto lock = [] { sessions_mutex.lock(); };
  const auto unlock = [] { sessions_mutex.unlock(); };
  const auto unlock_in_child = [] {
    is_forked.store(true);
    sessions_mutex.unlock();
  };
  return pthread_atfork(lock, unlock, unlock_in_child) == 0;
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
      world_(*this, options.stress ? Sample::kAll : Sample::kSome),
      engine_(pool_, *policy_, world_, engine_options(options)) {}

Session* Session::active() {
  return is_forked.load(std::memory_order_relaxed) ? nullptr
                                                   : active_session.load(std::memory_order_acquire);
}

bool Session::is_in_forked_child() { return is_forked.load(std::memory_order_relaxed); }

Session* Session::current() { return is_thread_in_scope() ? active() : nullptr; }

void Session::begin(const SessionOptions& options) {
  TORCH_CHECK(active_session == nullptr, "coop: a budget inside a budget is not possible yet");
  static const bool kWatchesForks = watch_forks();
  TORCH_CHECK(kWatchesForks && !is_forked, "coop: no budget in a forked process");
  install_cpu_allocator();
  reap();
  auto session = with_torch_errors([&] { return std::make_shared<Session>(options); });
  const std::scoped_lock lock(sessions_mutex);
  sessions().push_back(std::move(session));
  active_session = sessions().back().get();
}

void Session::end() {
  Session* session = active();
  TORCH_CHECK(session != nullptr, "coop: there is no budget to end");
  TORCH_CHECK(this_thread.sessions == 0, "coop: a budget cannot end inside an operator");
  is_ending = true;
  while (threads_inside > 0) std::this_thread::yield();
  const auto is_over = [] {
    active_session = nullptr;
    is_ending = false;
  };
  // Whatever happens, the scope is over.
  try {
    with_torch_errors([&] { session->evacuate(); });
  } catch (...) {
    is_over();
    throw;
  }
  is_over();
  reap();
}

CurrentSession::CurrentSession(Whose whose) {
  if (whose == Whose::kThisThreads && !is_thread_in_scope()) return;
  // Inside an operator the thread is inside already, and must not wait for itself.
  const bool is_outermost = this_thread.sessions == 0;
  while (is_outermost) {
    ++threads_inside;
    if (!is_ending) break;
    --threads_inside;
    while (is_ending) std::this_thread::yield();
  }
  ++this_thread.sessions;
  session_ = Session::active();
  if (session_ == nullptr) {
    --this_thread.sessions;
    if (is_outermost) --threads_inside;
  }
}

CurrentSession::~CurrentSession() {
  if (session_ != nullptr && --this_thread.sessions == 0) --threads_inside;
}

// Sessions that are over, and in which nothing lives any more.
void Session::reap() {
  std::vector<std::shared_ptr<Session>> dead;
  const std::scoped_lock lock(sessions_mutex);
  std::erase_if(sessions(), [&](std::shared_ptr<Session>& it) {
    const bool is_dead = it.get() != active_session && it->is_empty();
    if (is_dead) dead.push_back(std::move(it));
    return is_dead;
  });
}

// The last that lived in it may just have gone.
void Session::reap_if_over() noexcept {
  if (this == active_session || !is_empty()) return;
  try {
    reap();
  } catch (const std::bad_alloc&) {
    return;  // with the next one
  }
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

void Session::free_raw(void* data) noexcept {
  BlockId block;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = raw_.find(data);
    COOP_CHECK(found != raw_.end());
    block = found->second;
    raw_.erase(found);
  }
  engine_.free(block);
}

bool Session::free_anywhere(void* data) noexcept {
  std::shared_ptr<Session> owner;
  {
    const std::scoped_lock lock(sessions_mutex);
    const auto found = std::find_if(sessions().begin(), sessions().end(), [&](const auto& session) {
      return session->memory_.contains(data);
    });
    if (found == sessions().end()) return false;
    owner = *found;
  }
  if (is_forked) return true;  // the parent's
  owner->free_raw(data);
  owner->reap_if_over();
  return true;
}

bool Session::is_raw(const Memory& memory) const {
  return memory.deleter == &free_raw_memory && memory_.contains(memory.data);
}

Session::Raw Session::claim_raw(c10::StorageImpl& impl) {
  const Memory memory = memory_of(impl);
  if (!is_raw(memory)) return {};
  const std::scoped_lock lock(mutex_);
  return raw_.extract(memory.data);
}

void Session::give_back_raw(Raw raw) noexcept {
  const std::scoped_lock lock(mutex_);
  raw_.insert(std::move(raw));
}

BlockId Session::take_raw(c10::StorageImpl& impl) {
  const Raw raw = claim_raw(impl);
  if (raw.empty()) throw InternalError("an operator that was run again made no new storage");
  static_cast<void>(impl._mutable_data_ptr_no_checks().release_context());
  return raw.mapped();
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
  if (data != foreign->address || foreign->impl->nbytes() != foreign->bytes) {
    throw Error(
        "a tensor from before the budget was given other memory, in a way that coop does not "
        "see, while others were still to be made from it");
  }
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
