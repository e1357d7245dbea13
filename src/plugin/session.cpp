#include "plugin/session.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "plugin/cpu_allocator.hpp"
#include "plugin/warnings.hpp"

namespace coop::plugin {

// Under stress every operator makes again whatever it reads: slow, and meant to be. Whoever asks for a pace is told of it
// by look_at_pace(), between operators; a single one that makes again more than that allows must not go on for minutes
// before anybody looks.
EngineOptions engine_options(const SessionOptions& options) {
  constexpr double kForOneOperator = 2;
  EngineOptions engine;
  if (options.max_slowdown > 0) {
    engine.most_slowdown = std::min(engine.most_slowdown, kForOneOperator * options.max_slowdown);
  }
  if (options.stress) engine.most_slowdown = 0;
  return engine;
}

namespace {

// Under stress a sum of all that goes would keep a GPU waiting for most of the time.
Sample sample_for(const SessionOptions& options) {
  const bool is_thorough = options.verify || (options.stress && options.device.is_cpu());
  return is_thorough ? Sample::kAll : Sample::kSome;
}

}  // namespace

// --- the pool ---

std::byte* PoolMemory::acquire(Bytes bytes) {
  begin_ = device_.acquire(bytes);
  end_ = begin_ + bytes;
  return begin_;
}

void PoolMemory::give_back(std::byte* memory, Bytes bytes) noexcept {
  device_.give_back(memory, bytes);
}

bool PoolMemory::contains(const void* data) const {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return at >= reinterpret_cast<std::uintptr_t>(begin_) &&
         at < reinterpret_cast<std::uintptr_t>(end_);
}

Session::Session(const SessionOptions& options, Bytes pool_bytes)
    : options_(options),
      device_(device_at(options.device)),
      times_(device_.make_times()),
      streams_(device_.make_stream_order()),
      memory_(device_),
      policy_(make_policy(options.policy)),
      pool_({.bytes = pool_bytes,
             .fit = policy_->traits().fit,
             .small_limit = options.small_limit,
             .listener = streams_.get()},
            memory_),
      world_(*this, sample_for(options)),
      engine_(pool_, *policy_, world_, engine_options(options)),
      history_(device_.history(), options.device.index(), memory_.begin(), engine_),
      small_limit_(pool_.small_limit()),
      takes_light_calls_(small_limit_ > 0 && !options.audit),
      ease_(pool_bytes),
      torchs_before_(device_.bytes_now()),
      pace_(options.pace_window_ns, std::max(kMuchSlower, options.max_slowdown)) {}

// --- memory ---

c10::DataPtr Session::allocate(std::size_t bytes) {
  const PoolHistory::Asking asking(device_.history());
  const Allocation made = with_torch_errors([&] {
    try {
      try {
        return engine_.allocate_memory(bytes, this_thread.expected_cost, this_thread.is_settling);
      } catch (const OutOfMemory&) {
        if (!sweep_foreign()) throw;
        return engine_.allocate_memory(bytes, this_thread.expected_cost, this_thread.is_settling);
      }
    } catch (const OutOfMemory& error) {
      ++this_thread.refusals;
      this_thread.refused_by = this;
      ease_.end();
      {
        const std::scoped_lock lock(mutex_);
        last_refusal_ = error;
      }
      const bool is_disguised = this_thread.kernel_depth > 0 && !this_thread.takes_other_ways;
      TORCH_CHECK(!is_disguised, error.what());  // Note [Refusals]
      throw;
    }
  });
  void* data = made.address;
  try {
    const std::scoped_lock lock(mutex_);
    raw_.add(data, made.block);
    note_held(made.held);
    if (streams_) streams_->allocated(made.block);
  } catch (...) {
    {
      const std::scoped_lock lock(mutex_);
      static_cast<void>(raw_.take(data));
    }
    engine_.free(made.block);
    throw;
  }
  if (made.has_searched && takes_light_calls()) {
    takes_light_calls_ = false;
    ease_.end();
  }
  this_thread.allocated += bytes;
  this_thread.memory_ns += made.making_room_ns;
  return {data, data, &free_raw_memory, device_.which()};
}

// Under the lock.
void Session::note_held(Bytes held) noexcept {
  peak_held_ = std::max(peak_held_, held);
  peak_since_reset_ = std::max(peak_since_reset_, held);
  ease_.note(held, operators_so_far());
}

void Session::take_light_calls(bool takes_them) {
  if (!takes_them) ease_.end();
  const bool binds = engine_.eviction_stats().searches > 0;
  takes_light_calls_ = takes_them && small_limit_ > 0 && !options_.audit && !binds;
}

void Session::act_as_bound() {
  engine_.act_as_bound();
  takes_light_calls_ = false;
  ease_.end();
}

void Session::free_raw(void* data) noexcept {
  BlockId block;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = raw_.take(data);
    COOP_CHECK(found);
    block = *found;
  }
  engine_.free(block);
}

bool Session::is_raw(const Memory& memory) const {
  return memory.deleter == &free_raw_memory && memory_.contains(memory.data);
}

Session::Raw Session::claim_raw(c10::StorageImpl& impl) {
  const Memory memory = memory_of(impl);
  if (!is_raw(memory)) return {};
  const std::scoped_lock lock(mutex_);
  const auto claim = raw_.claim(memory.data);
  if (!claim) return {};
  return {*claim, memory.data};
}

void Session::give_back_raw(const Raw& raw) noexcept {
  const std::scoped_lock lock(mutex_);
  raw_.give_back(raw.data, raw.block);
}

BlockId Session::take_raw(c10::StorageImpl& impl) {
  const Raw raw = claim_raw(impl);
  if (!raw) throw InternalError("an operator that was run again made no new storage");
  static_cast<void>(impl._mutable_data_ptr_no_checks().release_context());
  const std::scoped_lock lock(mutex_);
  raw_.settle_claim();
  return raw.block;
}

OutOfMemory Session::last_refusal() const {
  const Session& whose = this_thread.refused_by != nullptr ? *this_thread.refused_by : *this;
  const std::scoped_lock lock(whose.mutex_);
  return whose.last_refusal_;
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
  if (options_.stress) {
    engine_.evict_all();
  } else if (ease_.is_due(operators_so_far())) {
    with_torch_errors([&] { static_cast<void>(try_ease()); });
  }
  if (const auto found = world_.take_unseen_write())
    warn_of_unseen_write(found->made_by, found->bytes);
}

void Session::look_at_pace() {
  if (takes_light_calls() || options_.stress) return;  // nothing is recomputed yet, or all of it is
  const auto loss = pace_.look(engine_);
  if (!loss) return;
  const double slowdown = loss->slowdown();
  if (options_.max_slowdown > 0 && slowdown > options_.max_slowdown) {
    raise_too_slow(*loss, options_.max_slowdown, engine_.report());
  }
  if (slowdown > kMuchSlower) {
    warn_of_slowdown(
        slowdown, options_.budget,
        what_would_halve(options_.budget + loss->more_to_halve, most_budget(device())));
  }
}

Session::Stats Session::stats() {
  const std::scoped_lock lock(mutex_);
  return {.peak_held = peak_held_,
          .operators = operators_so_far(),
          .light = light_operators_,
          .foreign = foreign_.size(),
          .records = records_,
          .raw = raw_.size()};
}

}  // namespace coop::plugin
