// The life of a session: it begins, ends, goes on, and dies with the last that lives in it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include <pthread.h>

#include "plugin/cpu_allocator.hpp"
#include "plugin/device.hpp"
#include "plugin/dispatch_key.hpp"
#include "plugin/last_out_of_memory.hpp"
#include "plugin/recording.hpp"
#include "plugin/session.hpp"
#include "plugin/without_python.hpp"

namespace coop::plugin {
namespace {

// In force, the one that began last: the others follow (Session::older_).
std::atomic<Session*> newest_session = nullptr;
// Set in a forked child: it has the key and the tables, but the pool is the parent's.
std::atomic<bool> is_forked = false;

// Those in force, and those that something still lives in.
std::mutex sessions_mutex;
std::vector<std::shared_ptr<Session>>& sessions() {
  static auto& all = *new std::vector<std::shared_ptr<Session>>;  // storages may outlive main()
  return all;
}

// Threads with a CurrentSession; and whether others wait until somebody is done who wants to be alone.
std::atomic<std::uint32_t> threads_inside = 0;
std::atomic<bool> is_closed = false;

// A fork copies the lock as it is, but not the thread that holds it.
bool watch_forks() {
  const auto lock = [] { sessions_mutex.lock(); };
  const auto unlock = [] { sessions_mutex.unlock(); };
  const auto unlock_in_child = [] {
    is_forked.store(true);
    is_closed.store(false);  // whoever closed it is not here
    sessions_mutex.unlock();
  };
  return pthread_atfork(lock, unlock, unlock_in_child) == 0;
}

bool is_same(c10::Device a, c10::Device b) {
  return a.type() == b.type() && (a.is_cpu() || a.index() == b.index());
}

// Of each device, the scope that ended there last.
struct EndedScope {
  c10::Device device;
  std::uint64_t began = 0;
  Snapshot snapshot;
};
std::mutex ended_mutex;
std::vector<EndedScope>& ended_scopes() {
  static auto& all = *new std::vector<EndedScope>;
  return all;
}

void note_end(EndedScope scope) {
  const std::scoped_lock lock(ended_mutex);
  std::erase_if(ended_scopes(),
                [&](const EndedScope& it) { return is_same(it.device, scope.device); });
  ended_scopes().push_back(std::move(scope));
}

Snapshot snapshot_of_ended(std::optional<c10::Device> device) {
  const std::scoped_lock lock(ended_mutex);
  const EndedScope* last = nullptr;
  for (const EndedScope& it : ended_scopes()) {
    if (device && !is_same(it.device, *device)) continue;
    if (last == nullptr || it.began > last->began) last = &it;
  }
  TORCH_CHECK(last != nullptr, "coop: there has been no budget yet to count in",
              device ? ", for " + device->str() : "");
  return last->snapshot;
}

std::shared_ptr<Session> take_pool(const SessionOptions& options) {
  try {
    Device& device = device_at(options.device);
    const Bytes pools = device.has_stand_ins() ? 0 : Session::pools_of(options.device).bytes;
    const Bytes before = device.bytes_before() + pools;
    TORCH_CHECK_WITH(
        OutOfMemoryError, before < options.budget,
        in_words_of_pytorch(options.device.type(),
                            "coop: " + format_bytes(before) +
                                " are in use before the budget begins, more than the budget of " +
                                format_bytes(options.budget)));
    return std::make_shared<Session>(options, options.budget - before);
  } catch (const std::bad_alloc&) {
    const Bytes free = device_at(options.device).free_bytes();
    TORCH_CHECK_WITH(
        OutOfMemoryError, false,
        in_words_of_pytorch(
            options.device.type(),
            "coop: there is no memory for a budget of " + format_bytes(options.budget) + ": " +
                format_bytes(free) + " are free on " + options.device.str() +
                " now. Give it less, with a smaller --budget (coop.budget); without "
                "any, coop run takes what is free, less a margin."));
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, "coop: ", error.what());
  }
}

}  // namespace

Session* Session::active() {
  return is_forked.load(std::memory_order_relaxed) ? nullptr
                                                   : newest_session.load(std::memory_order_acquire);
}

Session* Session::active_on(c10::Device device) {
  Session* session = active();
  while (session != nullptr && !is_same(session->options_.device, device)) {
    session = session->older_.load(std::memory_order_acquire);
  }
  return session;
}

void Session::for_each_active(const std::function<void(Session&)>& fn) {
  for (Session* it = active(); it != nullptr; it = it->older_.load(std::memory_order_acquire)) {
    fn(*it);
  }
}

bool Session::is_in_forked_child() { return is_forked.load(std::memory_order_relaxed); }

Session* Session::current_on(c10::Device device) {
  return is_thread_in_scope() ? active_on(device) : nullptr;
}

void Session::begin(const SessionOptions& options) {
  static std::mutex one_at_a_time;
  const std::scoped_lock beginning(one_at_a_time);
  if (const Session* there = active_on(options.device)) {
    TORCH_CHECK(false, "coop: a budget inside a budget: this device has one already, of ",
                format_bytes(there->options().budget),
                ", which stays in force. One device has one budget at a time.");
  }
  static const bool kWatchesForks = watch_forks();
  TORCH_CHECK(kWatchesForks && !is_forked, "coop: no budget in a forked process");
  reap();
  std::shared_ptr<Session> session = find_over(options);
  const bool is_new = session == nullptr;
  if (is_new) {
    session = take_pool(options);
  } else {
    session->resume();
  }
  // At once: whoever reaps meanwhile finds a session that is in use.
  const std::scoped_lock lock(sessions_mutex);
  if (is_new) sessions().push_back(session);
  device_at(options.device).install_allocator();
  session->history_.follow(is_new);
  session->begin_force();
}

// Under the lock.
void Session::begin_force() {
  static std::uint64_t begun = 0;
  began_ = ++begun;
  older_ = newest_session.load();
  is_active_ = true;
  newest_session = this;
}

// While no thread is inside.
void Session::end_force() noexcept {
  const std::scoped_lock lock(sessions_mutex);
  std::atomic<Session*>* at = &newest_session;
  while (at->load() != this) at = &at->load()->older_;
  *at = older_.load();
  older_ = nullptr;
  is_active_ = false;
}

// One that is over, and in whose pool something lives.
std::shared_ptr<Session> Session::find_over(const SessionOptions& options) {
  const std::scoped_lock lock(sessions_mutex);
  const auto found = std::find_if(sessions().begin(), sessions().end(),
                                  [&](const auto& it) { return it->options_ == options; });
  return found == sessions().end() ? nullptr : *found;
}

// Between the scopes anyone may have asked for an array of numpy's.
void Session::resume() {
  for (const LivingStorage& storage : living()) {
    if (!storage.impl().resizable()) storage.record().is_trusted = false;
  }
  before_ = Snapshot::of(*this);
  const Bytes held = engine_.held_bytes();
  const std::scoped_lock lock(mutex_);
  peak_held_ = held;
}

void Session::end(c10::Device device) {
  Session* session = active_on(device);
  TORCH_CHECK(session != nullptr, "coop: there is no budget to end");
  TORCH_CHECK(this_thread.sessions == 0, "coop: a budget cannot end inside an operator");
  {
    const WithoutPython released;
    while (is_closed.exchange(true)) std::this_thread::yield();
    while (threads_inside > 0) std::this_thread::yield();
  }
  const auto is_over = [&] {
    {
      const std::scoped_lock lock(session->mutex_);
      session->raw_.a_scope_ends();
    }
    note_end({.device = session->options_.device,
              .began = session->began_,
              .snapshot = Snapshot::of(*session).since(session->before_)});
    session->end_force();
    is_closed = false;
  };
  stop_recording_of(*session);
  session->ease_.end();
  session->ease_.forget_stragglers();
  // Whatever happens, the scope is over.
  try {
    with_torch_errors([&] { session->settle(); });
  } catch (...) {
    is_over();
    throw;
  }
  const std::string findings = session->findings().take();
  is_over();
  reap();
  TORCH_CHECK(findings.empty(), "coop: the audit found ", findings);
}

Snapshot Session::snapshot(std::optional<c10::Device> device) {
  const CurrentSession inside(CurrentSession::Whose::kAnybodys);
  Session* session = !inside ? nullptr : device ? active_on(*device) : &*inside;
  if (session == nullptr) return snapshot_of_ended(device);
  return Snapshot::of(*session).since(session->before_);
}

CurrentSession::CurrentSession(Whose whose) {
  if (whose == Whose::kThisThreads && !is_thread_in_scope()) return;
  // Inside an operator the thread is inside already, and must not wait for itself.
  const bool is_outermost = this_thread.sessions == 0;
  while (is_outermost) {
    ++threads_inside;
    if (!is_closed) break;
    --threads_inside;
    const WithoutPython released;
    while (is_closed) std::this_thread::yield();
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

AloneInside::AloneInside() {
  if (is_closed.exchange(true)) return;
  is_alone_ = threads_inside == 1;
  if (!is_alone_) is_closed = false;
}

AloneInside::~AloneInside() {
  if (is_alone_) is_closed = false;
}

bool AloneInside::is_other_thread_inside() {
  return threads_inside > (this_thread.sessions > 0 ? 1U : 0U);
}

// Sessions that are over, and in which nothing lives any more.
void Session::reap() {
  std::vector<std::shared_ptr<Session>> dead;
  const std::scoped_lock lock(sessions_mutex);
  std::erase_if(sessions(), [&](std::shared_ptr<Session>& it) {
    const bool is_dead = !it->is_active_ && it->is_empty();
    if (is_dead) dead.push_back(std::move(it));
    return is_dead;
  });
  for (const auto& it : dead) {
    // GPUs have one allocator for all of them.
    const bool is_last = std::none_of(sessions().begin(), sessions().end(), [&](const auto& other) {
      return other->options_.device.type() == it->options_.device.type();
    });
    if (is_last) it->device_.remove_allocator();
  }
}

// The last that lived in one may just have gone.
void Session::reap_those_that_are_over() noexcept {
  try {
    reap();
  } catch (const std::bad_alloc&) {
    return;  // with the next one
  }
}

bool Session::is_empty() {
  const std::scoped_lock lock(mutex_);
  return first_ == nullptr && raw_.size() == 0 && frees_ == 0;
}

bool Session::free_anywhere(void* data) noexcept {
  Session* owner = nullptr;
  {
    const std::scoped_lock lock(sessions_mutex);
    const auto found = std::find_if(sessions().begin(), sessions().end(), [&](const auto& session) {
      return session->memory_.contains(data);
    });
    if (found == sessions().end()) return false;
    owner = found->get();
    ++owner->frees_;  // it stays
  }
  if (is_forked) return true;  // the parent's
  owner->free_raw(data);
  --owner->frees_;  // from here on it may be gone
  if (!is_in_force(owner)) reap_those_that_are_over();
  return true;
}

void Session::for_each(const std::function<void(Session&)>& fn) {
  std::vector<std::shared_ptr<Session>> all;
  {
    const std::scoped_lock lock(sessions_mutex);
    all = sessions();
  }
  for (const auto& session : all) fn(*session);
}

// It need not be there.
bool Session::is_in_force(const Session* which) {
  const Session* it = active();
  while (it != nullptr && it != which) it = it->older_.load(std::memory_order_acquire);
  return it != nullptr;
}

Session::PoolsOf Session::pools_of(c10::Device device) {
  PoolsOf all;
  for_each([&](Session& session) {
    if (session.options_.device != device) return;
    const Bytes held = session.engine_.held_bytes();
    const std::scoped_lock lock(session.mutex_);
    const Bytes outside = session.outside_bytes_;  // PyTorch counts that itself
    ++all.count;
    all.bytes += session.pool_.bytes();
    all.held += held - std::min(held, outside);
    all.peak += std::max(session.peak_since_reset_, held) - std::min(held, outside);
  });
  return all;
}

void Session::reset_peaks_of(c10::Device device) {
  for_each([&](Session& session) {
    if (session.options_.device != device) return;
    const Bytes held = session.engine_.held_bytes();
    const std::scoped_lock lock(session.mutex_);
    session.peak_since_reset_ = held;
  });
}

bool Session::record_stream(const c10::DataPtr& data, c10::Stream stream) {
  const bool has_record = data.get_deleter() == &storage_gone;
  bool is_ours = has_record;
  if (has_record) {
    auto& record = *static_cast<StorageRecord*>(data.get_context());
    if (record.session.streams_) record.session.streams_->use_on(record.block, stream);
  } else if (data.get_deleter() == &free_raw_memory) {
    for_each([&](Session& session) {
      if (!session.memory_.contains(data.get())) return;
      is_ours = true;
      std::optional<BlockId> block;
      {
        const std::scoped_lock lock(session.mutex_);
        block = session.raw_.find(data.get());
      }
      if (block && session.streams_) session.streams_->use_on(*block, stream);
    });
  }
  return is_ours;
}

std::size_t Session::pools() {
  const std::scoped_lock lock(sessions_mutex);
  return sessions().size();
}

}  // namespace coop::plugin
