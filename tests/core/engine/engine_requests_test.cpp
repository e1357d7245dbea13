// Who wants to know what an engine is asked for is told of it, in order, and of nothing else.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "core/engine/requests.hpp"
#include "support/hash_world.hpp"

namespace coop {
namespace {

using testing::HashWorld;
using Kind = EngineRequest::Kind;

class Told final : public RequestObserver {
 public:
  void on_request(const EngineRequest& request) noexcept override {
    constexpr std::array<const char*, 13> kNames{
        "allocate",    "free", "source", "foreign",       "make room", "abort",  "release",
        "end lineage", "keep", "export", "make resident", "evict all", "compact"};
    std::string text = kNames[static_cast<std::size_t>(request.kind)];
    if (request.kind == Kind::kAllocate) text += " " + std::to_string(request.bytes);
    if (request.lives_long) text += " for long";
    add(text + (request.has_failed ? " failed" : ""));
  }
  void on_begin(std::uint64_t /*call*/, std::span<const StorageId> reads,
                std::span<const Write> writes, bool has_failed) noexcept override {
    add("begin " + std::to_string(reads.size()) + " " + std::to_string(writes.size()) +
        (has_failed ? " failed" : ""));
  }
  void on_end(std::uint64_t /*call*/, const CallResult& /*result*/,
              std::span<const StorageId> made) noexcept override {
    add("end " + std::to_string(made.size()));
  }
  std::vector<std::string> take() { return std::exchange(texts_, {}); }

 private:
  void add(std::string text) { texts_.push_back(std::move(text)); }
  std::vector<std::string> texts_;
};

using Texts = std::vector<std::string>;

class EngineRequests : public ::testing::Test {
 protected:
  EngineRequests()
      : policy_(make_policy("coop")),
        pool_({.bytes = to_bytes(10), .small_limit = 0}, backing_),
        world_(to_bytes(4096)),
        engine_(pool_, *policy_, world_) {
    world_.set_engine(engine_, pool_);
    engine_.observe(nullptr, &told_);
  }

  StorageId source(Grains grains) {
    const BlockId block = engine_.allocate(to_bytes(grains));
    world_.write(block, 1);
    return engine_.add_source(world_.new_storage(), to_bytes(grains), block);
  }
  StorageId make(Grains grains, StorageId from) {
    RunningCall call = engine_.begin_call({&from, 1}, {});
    const NewOutput output{.block = engine_.allocate(to_bytes(grains), 10),
                           .storage = world_.new_storage(),
                           .bytes = to_bytes(grains)};
    world_.write(output.block, 2);
    const Token token = world_.remember({.salt = 1, .makes = {to_bytes(grains)}, .cost = 10});
    return engine_
        .end_call(call,
                  {.token = token, .cost = 10, .is_replayable = true, .outputs = {&output, 1}})
        .front();
  }

  FakeBacking backing_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  HashWorld world_;
  Engine engine_;
  Told told_;
};

TEST_F(EngineRequests, AreToldInOrder) {
  const StorageId base = source(1);
  const StorageId made = make(2, base);
  engine_.export_storage(base);  // not as the write that it is
  engine_.keep_in_place(made);   // not as the end of lineage that it is
  engine_.end_lineage(made);
  engine_.make_resident(made);
  engine_.evict_all();
  engine_.compact();
  engine_.release(made);
  engine_.free(engine_.allocate(100));
  EXPECT_EQ(told_.take(), (Texts{"allocate 512", "source", "begin 1 0", "allocate 1024", "end 1",
                                 "export", "keep", "end lineage", "make resident", "evict all",
                                 "compact", "release", "allocate 100", "free"}));
}

// A recording of a GPU's programs had workspaces where they did not lie, and no plan.
TEST_F(EngineRequests, WhatLivesLongIsToldAsSuch) {
  const BlockId workspace = engine_.allocate_memory(100, 0, /*lives_long=*/true).block;
  EXPECT_EQ(told_.take(), Texts{"allocate 100 for long"});
  engine_.observe(nullptr, nullptr);
  engine_.observe(nullptr, &told_);
  EXPECT_EQ(told_.take(), Texts{"allocate 100 for long"}) << "to whoever comes later";
  engine_.free(workspace);
}

TEST_F(EngineRequests, ThatFailAreToldAsSuch) {
  const StorageId base = source(4);
  const StorageId first = make(6, base);
  told_.take();
  EXPECT_THROW(engine_.allocate(to_bytes(7)), OutOfMemory);
  EXPECT_THROW(engine_.add_foreign_source(world_.new_storage(), to_bytes(8), to_bytes(8)),
               OutOfMemory);
  const BlockId held = engine_.allocate(to_bytes(6));
  EXPECT_THROW(engine_.make_resident(first), OutOfMemory);
  EXPECT_THROW(engine_.begin_call({&first, 1}, {}), OutOfMemory);
  EXPECT_THROW(engine_.export_storage(first), OutOfMemory);
  engine_.free(held);
  EXPECT_EQ(told_.take(),
            (Texts{"allocate 3584 failed", "foreign failed", "allocate 3072",
                   "make resident failed", "begin 1 0 failed", "export failed", "free"}));
}

TEST_F(EngineRequests, RoomBesideWhatAnOperatorReads) {
  const StorageId base = source(1);
  told_.take();
  RunningCall call = engine_.begin_call({&base, 1}, {});
  engine_.make_room(call, 1024);
  EXPECT_THROW(engine_.make_room(call, Bytes{1} << 40U), OutOfMemory);
  engine_.abort_call(call);
  EXPECT_EQ(told_.take(), (Texts{"begin 1 0", "make room", "make room failed", "abort"}));
}

TEST_F(EngineRequests, WhatAReplayAllocatesIsNotTold) {
  const StorageId base = source(1);
  const StorageId made = make(2, base);
  engine_.evict_all();
  told_.take();
  engine_.make_resident(made);
  EXPECT_EQ(engine_.stats().replays, 1U);
  EXPECT_EQ(told_.take(), (Texts{"make resident"}));
}

TEST_F(EngineRequests, AnOperatorThatIsOverIsNotAbortedAgain) {
  RunningCall never;
  engine_.abort_call(never);
  RunningCall call = engine_.begin_call({}, {});
  engine_.abort_call(call);
  engine_.abort_call(call);
  RunningCall other = engine_.begin_call({}, {});
  engine_.end_call(other, {});
  engine_.abort_call(other);
  EXPECT_EQ(told_.take(), (Texts{"begin 0 0", "abort", "begin 0 0", "end 0"}));
}

TEST_F(EngineRequests, WhoComesLaterHearsOfWhatThereIs) {
  engine_.observe(nullptr, nullptr);
  const StorageId base = source(1);
  const BlockId raw = engine_.allocate(to_bytes(1));
  const StorageId gone = make(2, base);
  engine_.release(make(1, gone));
  engine_.evict_all();
  engine_.add_foreign_source(world_.new_storage(), to_bytes(1), to_bytes(1));
  engine_.export_storage(base);
  EXPECT_EQ(told_.take(), Texts{});
  engine_.observe(nullptr, &told_);
  EXPECT_EQ(told_.take(), (Texts{"allocate 512", "allocate 512", "source", "keep", "allocate 1024",
                                 "source", "foreign"}));
  engine_.free(raw);
}

}  // namespace
}  // namespace coop
