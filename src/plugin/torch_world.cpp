#include "plugin/torch_world.hpp"

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "plugin/checksum.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

// Blocks that a replay has got hold of and not yet handed over.
class OwnedBlocks {
 public:
  explicit OwnedBlocks(Engine& engine) : engine_(engine) {}
  OwnedBlocks(const OwnedBlocks&) = delete;
  OwnedBlocks& operator=(const OwnedBlocks&) = delete;
  ~OwnedBlocks() {
    for (const BlockId block : blocks_) engine_.free(block);
  }
  // So that add() does not throw.
  void reserve(std::size_t blocks) { blocks_.reserve(blocks); }
  void add(BlockId block) noexcept { blocks_.push_back(block); }
  void hand_over() noexcept { blocks_.clear(); }

 private:
  Engine& engine_;
  std::vector<BlockId> blocks_;
};

}  // namespace

void TorchWorld::replay(Token token, std::span<const BlockId> inputs, std::span<BlockId> outputs) {
  const RecordedCall& call = *reinterpret_cast<RecordedCall*>(token);  // NOLINT: our own token
  Engine& engine = session_.engine();
  const c10::Device device = session_.options().device;
  OwnedBlocks owned(engine);
  const auto home = session_.at_home();
  owned.reserve(call.overwritten.size() + call.outputs.size());

  std::vector<c10::Storage> read;
  read.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    session_.await(inputs[i]);
    read.push_back(storage_over(device, session_.address_of(inputs[i]), call.input_bytes[i]));
  }
  std::vector<c10::Storage> fresh;
  fresh.reserve(call.overwritten.size());
  for (const RecordedCall::Overwritten& it : call.overwritten) {
    const BlockId block = engine.allocate(it.bytes, call.cost);
    owned.add(block);
    outputs[it.output] = block;
    fresh.push_back(storage_over(device, session_.address_of(block), it.bytes));
  }

  const torch::jit::Stack results = run_again(call, read, fresh);
  call.for_each_output(results, [&](const at::Tensor& tensor, std::size_t number) {
    const BlockId block = session_.take_raw(*tensor.storage().unsafeGetStorageImpl());
    owned.add(block);
    outputs[call.written + number] = block;
  });
  check_contents(call, outputs);
  owned.hand_over();
}

torch::jit::Stack TorchWorld::run_again(const RecordedCall& call,
                                        std::span<const c10::Storage> inputs,
                                        std::span<const c10::Storage> fresh) {
  const TurnToDraw turn = session_.turn_to_draw(call.random != nullptr);
  const auto start = session_.times().begin(0);
  const std::uint64_t refusals = this_thread.refusals;
  // The allocator's answer to the operator: the engine knows what to do about it.
  const auto throw_if_refused = [&] {
    if (this_thread.refusals == refusals) return;
    throw OutOfMemory(session_.last_refusal().report(),
                      "That was to run " + call.name() + " again, for what the operator reads.");
  };
  torch::jit::Stack results;
  try {
    const InsideKernel inside;
    const OwnTime::Kernel kernel(session_.own_time());
    results = call.run_again(inputs, fresh);
  } catch (const c10::Error&) {
    throw_if_refused();
    throw;
  }
  throw_if_refused();
  const double took = session_.times().has_wall_times() ? session_.times().end(start) : call.cost;
  const std::scoped_lock lock(notes_mutex_);
  Recomputed*& it = recomputed_of_[call.op];
  if (it == nullptr) it = &recomputed_[call.name()];
  ++it->times;
  it->ns += static_cast<std::int64_t>(took);
  return results;
}

RecomputedByOperator TorchWorld::recomputed() const {
  const std::scoped_lock lock(notes_mutex_);
  return recomputed_;
}

// Better no number than a wrong one.
void TorchWorld::check_contents(const RecordedCall& call, std::span<const BlockId> outputs) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const RecordedCall::Contents& wanted = call.contents[i];
    const std::uint64_t sum = wanted.sum.load(std::memory_order_relaxed);
    if (sum == 0) continue;
    const void* data = session_.address_of(outputs[i]);
    if (session_.device().sum(data, wanted.bytes, sample_) == sum) continue;
    throw Error(call.name() +
                " was run again and made something else than it did at first. What it reads was "
                "changed out of coop's sight (by a thread that is older than the budget, or "
                "through an address that was taken before it: coop.pin says so), or it does not "
                "repeat itself. The tensor that it made is lost.");
  }
}

// The operator that made what is in the storage, if it can be run again. Under the engine's lock.
TorchWorld::Made TorchWorld::made(const StorageRecord& record) const noexcept {
  const StorageId id = record.id;
  if (!id) return {};  // so new that even its name is not yet known
  const Graph& graph = session_.engine().graph();
  const Value& value = graph.values()[graph.storages()[id].current];
  if (value.is_source()) return {};  // of an operator that failed
  const Token token = graph.calls()[value.producer].token;
  const RecordedCall* call = reinterpret_cast<RecordedCall*>(token);  // NOLINT: our own token
  return {.by = call, .contents = &call->contents[value.output]};
}

std::uint64_t TorchWorld::sum_of_made(const void* data, std::size_t bytes) const noexcept {
  const Sample sample = sample_ == Sample::kAll ? Sample::kAll : Sample::kFew;
  return session_.device().sum(data, bytes, sample);
}

bool TorchWorld::is_as_made(Token storage) noexcept {
  StorageRecord& record = *StorageRecord::of(storage);
  const Made made = this->made(record);
  if (!made || made.contents->made == 0) return true;
  const void* data = session_.address_under_lock(record.block);
  if (sum_of_made(data, made.contents->bytes) == made.contents->made) return true;
  record.is_trusted = false;
  try {
    const std::scoped_lock lock(notes_mutex_);
    unseen_write_ = {.made_by = made.by->name(), .bytes = record.bytes};
    has_unseen_write_ = true;
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it stays, which is what counts
  }
  return false;
}

std::optional<TorchWorld::UnseenWrite> TorchWorld::take_unseen_write() {
  if (!has_unseen_write_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::scoped_lock lock(notes_mutex_);
  has_unseen_write_ = false;
  return std::exchange(unseen_write_, std::nullopt);
}

void TorchWorld::note_contents(const StorageRecord& record) noexcept {
  const Made made = this->made(record);
  if (!made) return;
  RecordedCall::Contents& contents = *made.contents;
  if (!std::exchange(contents.was_evicted, true)) bytes_evicted_once_ += contents.bytes;
  if (!contents.is_filled || contents.sum != 0) return;
  const void* data = session_.address_under_lock(record.block);
  contents.sum = session_.device().sum(data, contents.bytes, sample_);
}

void TorchWorld::attach(Token storage, BlockId block) noexcept {
  StorageRecord& record = *StorageRecord::of(storage);
  if (std::exchange(record.was_evicted, false)) ++restorations_;
  record.block = block;
  std::byte* memory = session_.engine().pool().address(block);
  if (record.is_foreign) {
    session_.device().discard(memory, session_.engine().pool().info(block).bytes);
  } else {
    if (!record.is_ours) record.is_small = session_.engine().pool().info(block).is_small;
    give_memory(record, memory);
  }
}

void TorchWorld::detach(Token storage) noexcept {
  StorageRecord& record = *StorageRecord::of(storage);
  note_contents(record);
  record.block = {};
  record.was_evicted = true;
  take_memory(record);
  ++evictions_;
}

void TorchWorld::copy(BlockId from, BlockId to, Bytes bytes) {
  const auto home = session_.at_home();
  session_.await(from);
  session_.device().copy(session_.address_under_lock(to), session_.address_under_lock(from), bytes);
}

void TorchWorld::relocate(const Token* storage, BlockId block, Bytes from, Bytes to, Bytes bytes) {
  std::byte* source = session_.engine().pool().address(block);
  std::byte* target =
      source + (static_cast<std::ptrdiff_t>(to) - static_cast<std::ptrdiff_t>(from));
  if (storage != nullptr && StorageRecord::of(*storage)->is_foreign) {
    return session_.device().discard(target, bytes);  // there is nothing of it here
  }
  const auto home = session_.at_home();
  session_.await(block);
  session_.device().move(target, source, bytes);
  if (storage != nullptr) give_memory(*StorageRecord::of(*storage), target);
}

// It lets go of tensors, and what dies with them may come back to the engine.
void TorchWorld::forget(Token token) noexcept {
  const std::unique_ptr<RecordedCall> call(reinterpret_cast<RecordedCall*>(token));  // NOLINT
}

}  // namespace coop::plugin
