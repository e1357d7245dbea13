#include "plugin/memory_history.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace coop::plugin {
namespace {

using Action = MemoryHistory::Entry::Action;
using c10::CachingDeviceAllocator::SegmentInfo;

thread_local MemoryHistory::Stack asking;  // of what the thread asks for now

std::int64_t now_in_us() {
  using std::chrono::duration_cast;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return duration_cast<std::chrono::microseconds>(since).count();
}

}  // namespace

// --- of a device ---

void MemoryHistory::begin(const Settings& settings) {
  const std::scoped_lock lock(mutex_);
  settings_ = settings;
  is_on_ = true;
}

void MemoryHistory::end() {
  const std::scoped_lock lock(mutex_);
  is_on_ = false;
  settings_ = {};
}

void MemoryHistory::forget() {
  const std::scoped_lock lock(mutex_);
  entries_.clear();
}

MemoryHistory::Stack MemoryHistory::take_stack() const {
  if (!is_on()) return nullptr;
  c10::CachingDeviceAllocator::CreateContextFn take = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    if (settings_.stacks != Stacks::NEVER) take = settings_.take_stack;
  }
  return take != nullptr ? take() : nullptr;
}

// Where there is no memory to note it down, it is not noted down.
void MemoryHistory::note(Action action, c10::DeviceIndex device, std::size_t address, Bytes bytes,
                         Stack stack) noexcept try {
  const std::scoped_lock lock(mutex_);
  const auto& skipped = settings_.skipped;
  if (!is_on_ || std::find(skipped.begin(), skipped.end(), action) != skipped.end()) return;
  if (settings_.stacks < Stacks::ALLOC) stack = nullptr;
  Entry entry(action, device, address, bytes, nullptr, {0, 0}, {}, std::move(stack));
  entry.time_.t_ = now_in_us();
  entries_.push_back(std::move(entry));
  while (entries_.size() > settings_.most_entries) entries_.pop_front();
} catch (const std::exception&) {
  return;
}

std::vector<MemoryHistory::Entry> MemoryHistory::entries() const {
  const std::scoped_lock lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

// --- of a pool ---

PoolHistory::~PoolHistory() {
  if (!follows_) return;
  engine_.watch(nullptr);
  history_.note(Action::SEGMENT_FREE, device_, address_, engine_.pool().bytes());
}

void PoolHistory::follow(bool is_new) {
  const bool is_on = history_.is_on();
  if (is_on && is_new) {
    history_.note(Action::SEGMENT_ALLOC, device_, address_, engine_.pool().bytes());
  }
  if (follows_.exchange(is_on) != is_on) engine_.watch(is_on ? this : nullptr);
  if (is_on) return;
  const std::scoped_lock lock(mutex_);
  owners_.clear();
}

PoolHistory::Asking::Asking(const MemoryHistory& history) : is_on_(history.is_on()) {
  if (is_on_) before_ = std::exchange(asking, history.take_stack());
}

PoolHistory::Asking::~Asking() {
  if (is_on_) asking = std::move(before_);
}

void PoolHistory::on_event(const EngineEvent& event) noexcept {
  switch (event.kind) {
    case EngineEvent::Kind::kAllocated:
      return taken(event, asking);
    case EngineEvent::Kind::kFreed:
      return given_back(event.offset, event.bytes);
    case EngineEvent::Kind::kMoved:
      given_back(event.from, event.bytes);
      return taken(event, stack_of(event.block));
    case EngineEvent::Kind::kOutOfMemory:
      return history_.note(Action::OOM, device_, engine_.pool().free_bytes(), event.bytes, asking);
    default:
      return;
  }
}

void PoolHistory::taken(const EngineEvent& event, MemoryHistory::Stack stack) noexcept {
  try {
    const std::scoped_lock lock(mutex_);
    const std::size_t index = event.block.index();
    if (index >= owners_.size()) owners_.resize(index + 1);
    owners_[index] = {event.block, stack};
  } catch (const std::exception&) {
    stack = nullptr;  // no memory to keep it
  }
  history_.note(Action::ALLOC, device_, address_ + event.offset, event.bytes, std::move(stack));
}

void PoolHistory::given_back(Bytes offset, Bytes bytes) noexcept {
  history_.note(Action::FREE_REQUESTED, device_, address_ + offset, bytes);
  history_.note(Action::FREE_COMPLETED, device_, address_ + offset, bytes);
}

MemoryHistory::Stack PoolHistory::stack_of(BlockId block) const noexcept {
  const std::scoped_lock lock(mutex_);
  const std::size_t index = block.index();
  const bool is_known = index < owners_.size() && owners_[index].block == block;
  return is_known ? owners_[index].stack : nullptr;
}

// Viewers add up the sizes of blocks to get at addresses: what is free between them is one, too.
SegmentInfo PoolHistory::segment() const {
  std::vector<Engine::PlacedBlock> blocks = engine_.blocks();
  std::sort(blocks.begin(), blocks.end(),
            [](const auto& a, const auto& b) { return a.info.offset < b.info.offset; });
  SegmentInfo segment;
  segment.device = device_;
  segment.address = address_;
  segment.total_size = engine_.pool().bytes();
  segment.is_large = true;
  Bytes end = 0;
  const auto free_up_to = [&](Bytes offset) {
    if (offset > end) segment.blocks.push_back({.size = offset - end});
  };
  for (const auto& [block, info] : blocks) {
    free_up_to(info.offset);
    segment.blocks.push_back({.size = info.bytes,
                              .requested_size = info.requested_bytes,
                              .allocated = true,
                              .active = true,
                              .context_when_allocated = stack_of(block)});
    segment.requested_size += info.requested_bytes;
    segment.allocated_size += info.bytes;
    end = info.offset + info.bytes;
  }
  free_up_to(segment.total_size);
  segment.active_size = segment.allocated_size;
  return segment;
}

}  // namespace coop::plugin
