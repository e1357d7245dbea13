#include "plugin/cuda/cuda_allocator.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include "plugin/cuda/cuda_history.hpp"
#include "plugin/dispatch_key.hpp"
#include "plugin/session.hpp"
#include "plugin/torch_version.hpp"

namespace coop::plugin {
namespace {

using namespace c10::cuda::CUDACachingAllocator;  // NOLINT(google-build-using-namespace)
using c10::CachingDeviceAllocator::DeviceStats;

CUDAAllocator* torchs_own = nullptr;

// Of what a graph or a MemPool takes for itself.
class Redirections {
 public:
  using Filter = std::function<bool(cudaStream_t)>;

  void begin(c10::DeviceIndex device, c10::MempoolId_t pool, Filter filter) {
    const std::scoped_lock lock(mutex_);
    all_.push_back({.device = device, .pool = pool, .filter = std::move(filter)});
    private_pools = static_cast<std::uint32_t>(all_.size());
  }
  void end(c10::DeviceIndex device, c10::MempoolId_t pool) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const One& it) {
      return it.device == device && it.pool == pool;
    });
    if (found != all_.end()) all_.erase(found);
    private_pools = static_cast<std::uint32_t>(all_.size());
  }
  bool has(c10::DeviceIndex device, cudaStream_t stream) const {
    if (private_pools.load(std::memory_order_relaxed) == 0) return false;
    const std::scoped_lock lock(mutex_);
    return std::any_of(all_.begin(), all_.end(),
                       [&](const One& it) { return it.device == device && it.filter(stream); });
  }

 private:
  struct One {
    c10::DeviceIndex device = 0;
    c10::MempoolId_t pool;
    Filter filter;
  };
  mutable std::mutex mutex_;
  std::vector<One> all_;
};

class CudaAllocator final : public CUDAAllocator {
 public:
  // --- memory ---

  c10::DataPtr allocate(std::size_t bytes) override {
    Session* session = bytes > 0 ? session_here() : nullptr;
    return session != nullptr ? session->allocate(bytes) : torchs_own->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_raw; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    torchs_own->copy_data(to, from, bytes);
  }
  void* raw_alloc(std::size_t bytes) override {
    Session* session = bytes > 0 ? session_here() : nullptr;
    if (session == nullptr) return torchs_own->raw_alloc(bytes);
    return session->allocate(bytes).release_context();
  }
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override {
    const c10::DeviceIndex device = c10::cuda::current_device();
    if (c10::cuda::getCurrentCUDAStream(device).stream() == stream) return raw_alloc(bytes);
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, device));
    return raw_alloc(bytes);
  }
  void raw_delete(void* data) override { free_raw(data); }
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    if (!Session::record_stream(data, stream.unwrap())) torchs_own->recordStream(data, stream);
  }

  // --- what there is ---

  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    DeviceStats stats = torchs_own->getDeviceStats(device);
    const Session::PoolsOf pools = Session::pools_of(c10::Device(c10::kCUDA, device));
    const auto add = [](auto& all, Bytes now, Bytes most) {
      auto& stat = all[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
      const auto before = stat.current;
      stat.current += static_cast<std::int64_t>(now);
      stat.peak = std::max(stat.peak, before + static_cast<std::int64_t>(most));
      stat.allocated += static_cast<std::int64_t>(most);
      stat.freed += static_cast<std::int64_t>(most - now);
    };
    add(stats.allocated_bytes, pools.held, pools.peak);
    add(stats.active_bytes, pools.held, pools.peak);
    add(stats.requested_bytes, pools.held, pools.peak);
    add(stats.reserved_bytes, pools.bytes, pools.bytes);
    add(stats.segment, pools.count, pools.count);
    return stats;
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    torchs_own->resetPeakStats(device);
    Session::reset_peaks_of(c10::Device(c10::kCUDA, device));
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    torchs_own->resetAccumulatedStats(device);
  }
  SnapshotInfo snapshot(c10::MempoolId_t pool, bool include_traces) override {
    SnapshotInfo all = torchs_own->snapshot(pool, include_traces);
    if (pool != c10::MempoolId_t{0, 0}) return all;
    add_pools_to(all);
    return all;
  }
  // What cuDNN may take for a workspace: all that eviction could make free.
  void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override {
    torchs_own->cacheInfo(device, largest);
    if (Session* session = session_here()) {
      *largest = std::max<std::size_t>(*largest, session->engine().pool().bytes());
    }
  }
  void* getBaseAllocation(void* data, std::size_t* bytes) override {
    void* base = nullptr;
    Session::for_each([&](Session& session) {
      if (!session.has_memory_at(data)) return;
      base = session.pool_address();
      if (bytes != nullptr) *bytes = session.engine().pool().bytes();
    });
    return base != nullptr ? base : torchs_own->getBaseAllocation(data, bytes);
  }
  ShareableHandle shareIpcHandle(void* data) override {
    bool is_ours = false;
    Session::for_each([&](Session& it) { is_ours = is_ours || it.has_memory_at(data); });
    TORCH_CHECK(
        !is_ours,
        "coop: a tensor inside a budget cannot be shared with another process: its memory is "
        "a piece of the budget's. Share a copy made outside the budget.");
    return torchs_own->shareIpcHandle(data);
  }

  // --- what is PyTorch's alone ---

  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override {
    with_session_of(device, [](Session& session) { session.streams()->await_all(); });
    redirections_.begin(device, pool, filter);
    torchs_own->beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    redirections_.end(device, pool);
    torchs_own->endAllocateToPool(device, pool);
    with_session_of(device, [](Session& session) { session.count_outside(); });
  }
  bool initialized() override { return torchs_own->initialized(); }
  void init(int devices) override { torchs_own->init(devices); }
  double getMemoryFraction(c10::DeviceIndex device) override {
    return torchs_own->getMemoryFraction(device);
  }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    torchs_own->setMemoryFraction(fraction, device);
  }
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex device) override {
    return torchs_own->getExpandableSegmentSizes(device);
  }
  void enable(bool value) override { torchs_own->enable(value); }
  bool isEnabled() const override { return torchs_own->isEnabled(); }
  void emptyCache(c10::MempoolId_t pool) override {
    torchs_own->emptyCache(pool);
    try {
      with_session_of(c10::cuda::current_device(), [](Session& it) { it.count_outside(); });
    } catch (const c10::OutOfMemoryError&) {
      // More is held than there is room for: whoever took it has heard of that.
    }
  }
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    torchs_own->releasePool(device, pool);
  }
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    return torchs_own->getPoolUseCount(device, pool);
  }
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          std::shared_ptr<CUDAAllocator> allocator) override {
    torchs_own->createOrIncrefPool(device, pool, std::move(allocator));
  }
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use) override {
    torchs_own->setUseOnOOM(device, pool, use);
  }
  void setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    torchs_own->setNoSplit(device, pool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override {
    return torchs_own->checkPoolLiveAllocations(device, pool, expected);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return torchs_own->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override { return torchs_own->isHistoryEnabled(); }
  void recordHistory(bool enabled, CreateContextFn recorder, std::size_t most, RecordContext when,
                     bool clears, const std::vector<std::string>& skipped) override {
    torchs_own->recordHistory(enabled, recorder, most, when, clears, skipped);
    record_cuda_history(enabled, recorder, most, when, clears, skipped);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& data) override {
    torchs_own->recordAnnotation(data);
  }
  void pushCompileContext(std::string& context) override {
    torchs_own->pushCompileContext(context);
  }
  void popCompileContext() override { torchs_own->popCompileContext(); }
  void setUserMetadata(const std::string& data) override { torchs_own->setUserMetadata(data); }
  std::string getUserMetadata() override { return torchs_own->getUserMetadata(); }
  void attachOutOfMemoryObserver(OutOfMemoryObserver observer) override {
    torchs_own->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override {
    torchs_own->attachAllocatorTraceTracker(std::move(tracker));
  }
#if TORCH_VERSION_MINOR >= 12
  void attachOomRejectionObserver(OomRejectionObserver observer) override {
    torchs_own->attachOomRejectionObserver(std::move(observer));
  }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* data) override {
    return torchs_own->getContextForPointer(data);
  }
#endif
#if TORCH_VERSION_MINOR >= 13
  void markCaptureBegin(c10::DeviceIndex device) override { torchs_own->markCaptureBegin(device); }
  void markCaptureEnd(c10::DeviceIndex device) override { torchs_own->markCaptureEnd(device); }
  c10::DataPtr allocateWithAddress(std::size_t bytes, void* address) override {
    return torchs_own->allocateWithAddress(bytes, address);
  }
#endif
#if TORCH_VERSION_MINOR >= 14
  bool supportsUserMetadata() override { return torchs_own->supportsUserMetadata(); }
  void annotateMemory(const void* data, const std::string& text) override {
    torchs_own->annotateMemory(data, text);
  }
#endif
  void enablePeerAccess(c10::DeviceIndex from, c10::DeviceIndex to) override {
    torchs_own->enablePeerAccess(from, to);
  }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes, cudaStream_t stream, bool peers) override {
    return torchs_own->memcpyAsync(to, to_device, from, from_device, bytes, stream, peers);
  }
  std::shared_ptr<AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                     c10::MempoolId_t pool) override {
    return torchs_own->getCheckpointState(device, pool);
  }
  CheckpointDelta setCheckpointPoolState(c10::DeviceIndex device,
                                         std::shared_ptr<AllocatorState> state) override {
    return torchs_own->setCheckpointPoolState(device, std::move(state));
  }
  std::string name() override { return torchs_own->name(); }

 private:
  static void free_raw(void* data) {
    if (data != nullptr && !Session::free_anywhere(data)) torchs_own->raw_delete(data);
  }
  // Null if what this thread asks for now is not for the pool.
  Session* session_here() {
    if (!is_thread_in_scope() || Session::active() == nullptr) return nullptr;
    const c10::DeviceIndex device = c10::cuda::current_device();
    Session* session = Session::current_on(c10::Device(c10::kCUDA, device));
    if (session == nullptr) return nullptr;
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device).stream();
    return redirections_.has(device, stream) ? nullptr : session;
  }
  static void with_session_of(c10::DeviceIndex device, const std::function<void(Session&)>& fn) {
    const CurrentSession inside(CurrentSession::Whose::kAnybodys);
    Session* session = inside ? Session::active_on(c10::Device(c10::kCUDA, device)) : nullptr;
    if (session != nullptr) fn(*session);
  }

  Redirections redirections_;
};

CudaAllocator& ours() {
  static auto& it = *new CudaAllocator;  // storages remember it for ever
  return it;
}

}  // namespace

CUDAAllocator& plain_cuda_allocator() { return torchs_own != nullptr ? *torchs_own : *get(); }

void install_cuda_allocator() {
  CUDAAllocator* now = get();
  if (now == &ours()) return;
  torchs_own = now;
  allocator.store(&ours());
  c10::SetAllocator(c10::kCUDA, &ours(), 0);
  follow_cuda_history(*torchs_own);
}

// Unless somebody has put another one in front of us, or is still to ask what there was.
void remove_cuda_allocator() noexcept {
  if (get() != &ours() || is_cuda_history_on()) return;
  allocator.store(torchs_own);
  c10::SetAllocator(c10::kCUDA, torchs_own, 0);
}

}  // namespace coop::plugin
