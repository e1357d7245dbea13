#pragma once

// One budget: a pool of memory, the engine that runs it, and everything of PyTorch's that lives there.
//
//     begin(options)    makes the pool; threads that have our dispatch key are inside from now on
//     end(device)       brings everything back that lives on; the pool goes with the last that lives in it
//     begin(options)    with the same options, while the pool is there: goes on in it
//
// A device has one at a time, and several devices may have one each (concerned.hpp).
//
// Memory of the pool is in one of three hands:
//   - raw: PyTorch got it from the allocator, and may hold it in any way. Pinned: it stays where it is.
//   - a storage's: an operator returned it. It has a StorageRecord, and the engine knows it.
//   - nobody's but the engine's: a past version that others are made from.
// All of it may outlive end().
//
// Locks: `mutex_` guards our tables only. No kernel runs, no tensor dies and the engine is not called
// while it is held. Operators of other threads may still run when a session is to end: it waits for them, whichever
// session's they are.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>

#include "core/engine/engine.hpp"
#include "core/engine/out_of_memory.hpp"
#include "core/pool/backing.hpp"
#include "plugin/audit.hpp"
#include "plugin/device.hpp"
#include "plugin/ease.hpp"
#include "plugin/living_storage.hpp"
#include "plugin/memory_history.hpp"
#include "plugin/own_time.hpp"
#include "plugin/pace.hpp"
#include "plugin/random_state.hpp"
#include "plugin/raw_blocks.hpp"
#include "plugin/snapshot.hpp"
#include "plugin/storage_record.hpp"
#include "plugin/taint.hpp"
#include "plugin/thread_state.hpp"
#include "plugin/torch_world.hpp"

namespace coop::plugin {

struct SessionOptions {
  c10::Device device = c10::Device(c10::kCPU);
  Bytes budget = 0;
  Bytes small_limit = Bytes{64} << 10U;
  std::string policy = "coop";
  bool stress = false;  // after every operator, all that may be evicted is evicted
  bool verify =
      false;           // all bytes of what is evicted are compared when it comes back, not a sample
  bool audit = false;  // every operator is run twice and looked at; nothing is evicted
  double max_slowdown = 0;      // it is an error to be slower than this many times; 0: none
  double pace_window_ns = 5e9;  // of operators: how long it is watched before anything is said
  bool operator==(const SessionOptions&) const = default;
};

[[nodiscard]] EngineOptions engine_options(const SessionOptions& options);

// A device's memory, and where it lies.
class PoolMemory final : public Backing {
 public:
  explicit PoolMemory(Device& device) : device_(device) {}
  std::byte* acquire(Bytes bytes) override;
  void give_back(std::byte* memory, Bytes bytes) noexcept override;
  [[nodiscard]] bool contains(const void* data) const;
  [[nodiscard]] std::byte* begin() const { return begin_; }

 private:
  Device& device_;
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const SessionOptions& options, Bytes pool_bytes);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  static void begin(const SessionOptions& options);
  static void end(c10::Device device);
  // In force, whichever thread asks: of several, the one that began last. Null if there is none, and in a forked child.
  static Session* active();
  static Session* active_on(c10::Device device);
  // The latest first.
  static void for_each_active(const std::function<void(Session&)>& fn);
  // Of the calling thread; null outside the scope.
  static Session* current_on(c10::Device device);
  // Whether there are others in force that began before. Of active(): whether there are several.
  [[nodiscard]] bool has_older() const { return older_.load(std::memory_order_relaxed) != nullptr; }
  [[nodiscard]] bool is_active() const { return is_active_.load(std::memory_order_relaxed); }
  static bool is_in_forked_child();
  // Memory that the allocator handed out; true if it was a pool's.
  static bool free_anywhere(void* data) noexcept;
  static std::size_t pools();
  // Every one that has a pool.
  static void for_each(const std::function<void(Session&)>& fn);
  // What allocators are asked for: all pools on a device.
  struct PoolsOf {
    std::size_t count = 0;
    Bytes bytes = 0;
    Bytes held = 0;
    Bytes peak = 0;  // since the last reset
  };
  static PoolsOf pools_of(c10::Device device);
  static void reset_peaks_of(c10::Device device);
  // Another stream uses this memory; false if it is no pool's.
  static bool record_stream(const c10::DataPtr& data, c10::Stream stream);

  [[nodiscard]] Engine& engine() { return engine_; }
  [[nodiscard]] TorchWorld& world() { return world_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] OperatorTimes& times() { return *times_; }
  [[nodiscard]] OwnTime& own_time() { return own_time_; }
  // Null where there are no streams.
  [[nodiscard]] StreamOrder* streams() { return streams_.get(); }
  // What the calling thread does while this lives comes in the engine's own order; null: it does anyway.
  [[nodiscard]] std::unique_ptr<StreamOrder::AtHome> at_home() {
    return streams_ ? streams_->at_home() : nullptr;
  }
  // What the engine has brought back may be used by whatever the calling thread enqueues next.
  void hand_over(const StorageRecord& record);
  // Whoever still uses the block is done with it before what is done with it next, at home.
  void await(BlockId block) noexcept {
    if (streams_) streams_->await(block);
  }
  [[nodiscard]] std::byte* pool_address() const { return memory_.begin(); }
  [[nodiscard]] bool has_memory_at(const void* data) const { return memory_.contains(data); }
  [[nodiscard]] PoolHistory& history() { return history_; }

  // --- memory ---

  // Throws c10::OutOfMemoryError.
  c10::DataPtr allocate(std::size_t bytes);
  // What the last of those was about.
  // Why memory was refused last: to this thread, whichever budget it asked.
  [[nodiscard]] OutOfMemory last_refusal() const;
  // Memory of the pool that no record has is about to get one. None if it is no such memory, or if another
  // thread was first. Who has claimed it links its record, or gives it back.
  struct Raw : RawBlocks::Claim {
    const void* data = nullptr;
    explicit operator bool() const { return data != nullptr; }
  };
  Raw claim_raw(c10::StorageImpl& impl);
  void give_back_raw(const Raw& raw) noexcept;
  // The raw memory of a storage, taken out of its hands.
  BlockId take_raw(c10::StorageImpl& impl);
  [[nodiscard]] void* address_of(BlockId block) const;
  // The same, for whoever is called under the engine's lock.
  [[nodiscard]] void* address_under_lock(BlockId block) const;

  // --- storages ---

  // What the engine knows the storage by; made known if it is new. Null if there is nothing to know: no
  // bytes, another device.
  StorageRecord* record_of(c10::StorageImpl& impl);
  // Null also if it is new.
  StorageRecord* known_record_of(c10::StorageImpl& impl);
  void link(StorageRecord& record) noexcept;
  // Whether nothing that an operator does with the storage concerns the engine (light_call.hpp).
  bool is_light(c10::StorageImpl& impl, bool is_written, bool at_ease);
  // A storage of raw memory, large and made at ease: it can be found again.
  void note_owner(c10::StorageImpl& impl) noexcept;
  [[nodiscard]] bool takes_light_calls() const {
    return takes_light_calls_.load(std::memory_order_relaxed);
  }
  // The engine need not hear of operators at all.
  [[nodiscard]] bool is_at_ease() const { return ease_.is_on(); }
  // For a thread that is inside, and in no operator. False if that is not possible now.
  bool try_ease();
  void settle_workspace() { device_.settle_workspace(); }
  // Before an operator that is heard: what was made at ease becomes known, as soon as that can be.
  void look_after_ease() {
    if (ease_.may_have_stragglers() && !ease_.is_on()) adopt_all_raw();
  }
  void end_ease() noexcept { ease_.end(); }
  // While something is recorded there are none: the engine hears of every operator.
  void take_light_calls(bool takes_them);
  // From now on as if memory were short: nothing is light, and the engine does all that it does for whoever must evict.
  void act_as_bound();
  // It is dead, and no operator runs with it.
  void release(StorageRecord* record) noexcept;
  // The engine no longer knows it.
  void forget(StorageRecord* record) noexcept;
  // Kept from now on, not made again.
  void end_lineage(c10::StorageImpl& impl);
  // What the report on memory names apart.
  void note_gradient(StorageRecord& gradient);
  struct Lasting {
    Bytes parameters = 0;
    Bytes gradients = 0;
  };
  [[nodiscard]] Lasting lasting() const;
  // Resident and in place until it dies.
  void export_storage(c10::StorageImpl& impl);
  // The same, but it is still operators only that write it: others may be made again from it.
  void pin_storage(c10::StorageImpl& impl);
  // A graph that is being captured uses it: it keeps the address, and writes there whenever it is launched.
  void give_to_graph(c10::StorageImpl& impl);
  // Code that nobody sees is about to write somewhere outside the pool: nothing is made again from what lies there.
  void distrust_foreign();
  // PyTorch has taken memory of its own for a graph or a MemPool, or has given some back: it counts in the budget.
  // Throws c10::OutOfMemoryError.
  void count_outside();
  // Of the calling thread, while that lives (Note [One draws at a time]); of nobody where nothing is drawn.
  static TurnToDraw turn_to_draw(bool draws) { return TurnToDraw(draws); }
  // For everything that happens between operators.
  void between_operators();
  // Before one. Throws c10::OutOfMemoryError where it is slower than the program wants it to be.
  void look_at_pace();

  struct Stats {
    Bytes peak_held = 0;
    std::uint64_t operators = 0;
    std::uint64_t light = 0;  // of those
    std::uint64_t foreign = 0;
    std::uint64_t records = 0;
    std::uint64_t raw = 0;
  };
  [[nodiscard]] Stats stats();
  // Of an audit; the end of the scope says them.
  [[nodiscard]] Findings& findings() { return findings_; }
  void count_operator() { whole_operators_.fetch_add(1, std::memory_order_relaxed); }
  void count_light_operator() { light_operators_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] bool is_large(std::size_t bytes) const { return bytes > small_limit_; }
  // By operators, in the pool: new storages, and what was written where it was.
  [[nodiscard]] MadeBytes& made() { return made_; }
  // Of the scope that is in force on the device, or of the last one there. Without a device: of the one that began last.
  static Snapshot snapshot(std::optional<c10::Device> device);

 private:
  static void reap();
  static bool is_in_force(const Session* which);
  void begin_force();
  void end_force() noexcept;
  static std::shared_ptr<Session> find_over(const SessionOptions& options);
  static void reap_those_that_are_over() noexcept;
  void resume();
  [[nodiscard]] bool is_raw(const Memory& memory) const;
  [[nodiscard]] void* foreign_address_of(BlockId block) const;
  void free_raw(void* data) noexcept;
  StorageRecord* adopt_raw(c10::StorageImpl& impl);
  void make_raw(LivingStorage& storage);
  // All raw memory whose storage is known, unless it would have to stay where it is.
  void adopt_all_raw();
  void forget_what_feeds_calls() noexcept;
  // Whether an operator may be running that has told nobody what it uses.
  [[nodiscard]] bool may_be_used_unheard();
  [[nodiscard]] std::uint64_t operators_so_far() const {
    return whole_operators_.load(std::memory_order_relaxed) +
           light_operators_.load(std::memory_order_relaxed);
  }
  void note_held(Bytes held) noexcept;
  StorageRecord* find_foreign(c10::StorageImpl& impl, const void* data);
  StorageRecord* foreign_record_of(c10::StorageImpl& impl);
  StorageRecord* add_foreign(c10::StorageImpl& impl, const Memory& memory, Bytes room);
  void drop_old_foreign(c10::StorageImpl& impl, const void* data) noexcept;
  void release_foreign(std::unique_ptr<StorageRecord> record) noexcept;
  [[nodiscard]] bool is_sweep_due() const;
  bool sweep_foreign();
  void settle();
  LivingStorages living();
  bool settle(StorageRecord& record);
  void move_out(LivingStorages& storages);
  void move_out(LivingStorage& storage);
  void stay_in_place(const LivingStorages& storages);
  void pin(StorageRecord& record);
  void release_all_foreign() noexcept;
  friend void storage_gone(void* context) noexcept;
  [[nodiscard]] bool is_empty();

  SessionOptions options_;
  Device& device_;
  std::unique_ptr<OperatorTimes> times_;
  OwnTime own_time_;
  std::unique_ptr<StreamOrder> streams_;
  PoolMemory memory_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  TorchWorld world_;
  Engine engine_;
  PoolHistory history_;
  Bytes small_limit_;
  std::atomic<bool> is_active_ = false;
  std::atomic<Session*> older_ = nullptr;  // in force, too: beside what else every operator asks
  std::atomic<bool> takes_light_calls_;
  Ease ease_;

  mutable std::mutex mutex_;
  RawBlocks raw_;
  StorageRecord* first_ = nullptr;
  std::uint64_t records_ = 0;
  std::unordered_map<c10::StorageImpl*, std::unique_ptr<StorageRecord>> foreign_;
  std::vector<StorageRecord*> stand_ins_;  // by BlockId::index()
  std::size_t sweep_at_ = 64;
  Bytes foreign_bytes_ = 0;    // first seen since the last sweep
  const Bytes torchs_before_;  // what PyTorch held before there was a pool
  std::mutex outside_mutex_;
  c10::intrusive_ptr<c10::StorageImpl> outside_;  // for all that it has taken since
  std::atomic<Bytes> outside_bytes_ = 0;
  std::atomic<bool> has_given_to_graph_ = false;
  Bytes peak_held_ = 0;
  Bytes peak_since_reset_ = 0;
  OutOfMemory last_refusal_{MemoryReport{}};
  Snapshot before_;          // the scope began
  std::uint64_t began_ = 0;  // how many had begun by then
  std::atomic<std::uint64_t> whole_operators_ = 0;
  MadeBytes made_;
  Pace pace_;
  Findings findings_;
  std::atomic<std::uint64_t> light_operators_ = 0;
  std::atomic<std::uint32_t> frees_ = 0;  // that are going on: until then it is not empty
};

// The session of the calling thread: of several, the one that began last. None of them ends while this is there. Null
// outside the scope.
class CurrentSession {
 public:
  // Whatever thread asks: for what other threads may ask too.
  enum class Whose : std::uint8_t { kThisThreads, kAnybodys };
  explicit CurrentSession(Whose whose = Whose::kThisThreads);
  CurrentSession(const CurrentSession&) = delete;
  CurrentSession& operator=(const CurrentSession&) = delete;
  ~CurrentSession();
  explicit operator bool() const { return session_ != nullptr; }
  Session& operator*() const { return *session_; }
  Session* operator->() const { return session_; }

 private:
  Session* session_ = nullptr;
};

// No other thread is inside an operator, or gets there, while this lives; for a thread that is. False if one is
// there now.
class AloneInside {
 public:
  AloneInside();
  AloneInside(const AloneInside&) = delete;
  AloneInside& operator=(const AloneInside&) = delete;
  ~AloneInside();
  explicit operator bool() const { return is_alone_; }
  [[nodiscard]] static bool is_other_thread_inside();

 private:
  bool is_alone_ = false;
};

// Notes the facts (last_out_of_memory.hpp) and throws c10::OutOfMemoryError.
[[noreturn]] void raise_out_of_memory(const OutOfMemory& error);

// Our errors as PyTorch's.
template <typename Function>
auto with_torch_errors(Function&& fn) {
  try {
    return fn();
  } catch (const OutOfMemory& error) {
    raise_out_of_memory(error);
  } catch (const Error& error) {
    TORCH_CHECK(false, "coop: ", error.what());
  }
}

}  // namespace coop::plugin
