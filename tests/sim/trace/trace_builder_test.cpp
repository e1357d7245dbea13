// A trace that exists makes sense: whatever does not is refused when it is added.
#include "sim/trace/trace_builder.hpp"

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace coop::sim {
namespace {

// Storages 0 (alive), 1 (released), 2 (pinned); nothing else.
struct Fixture {
  TraceBuilder builder;
  StorageNumber alive = builder.add_source(100);
  StorageNumber released = builder.add_source(200);
  StorageNumber pinned = builder.add_source(300);
  NameNumber op = builder.name("op");

  Fixture() {
    builder.release(released);
    builder.pin(pinned);
  }
  void call(std::vector<StorageNumber> reads, std::vector<TraceWrite> writes,
            std::vector<NewStorage> outputs, double cost = 1, Bytes workspace = 0) {
    builder.add_call({.op = op,
                      .cost_ns = cost,
                      .workspace_bytes = workspace,
                      .reads = reads,
                      .writes = writes,
                      .outputs = outputs});
  }
};

struct Senseless {
  const char* what;
  const char* says;
  std::function<void(Fixture&)> add;
};

const std::vector<Senseless>& senseless_events() {
  static const std::vector<Senseless> kEvents{
      {"release of nothing", "releases storage 7, which does not exist",
       [](Fixture& f) { f.builder.release(StorageNumber{7}); }},
      {"double release", "releases storage 1, which has been released",
       [](Fixture& f) { f.builder.release(f.released); }},
      {"release of what is pinned", "releases storage 2, which is pinned",
       [](Fixture& f) { f.builder.release(f.pinned); }},
      {"export after release", "exports storage 1, which has been released",
       [](Fixture& f) { f.builder.export_pointer(f.released); }},
      {"pin after release", "pins storage 1, which has been released",
       [](Fixture& f) { f.builder.pin(f.released); }},
      {"double pin", "pins storage 2, which is pinned already",
       [](Fixture& f) { f.builder.pin(f.pinned); }},
      {"unpin without pin", "unpins storage 0, which is not pinned",
       [](Fixture& f) { f.builder.unpin(f.alive); }},
      {"enormous source", "a storage of 18446744073709551615 bytes is larger than any memory",
       [](Fixture& f) { f.builder.add_source(std::numeric_limits<Bytes>::max()); }},
      {"source with a name that nobody has", "there is no name 9",
       [](Fixture& f) { f.builder.add_source(1, NameNumber{9}); }},
      {"name with a line break", "a name has a line break",
       [](Fixture& f) { f.builder.name("two\nlines"); }},
      {"read after release", "reads storage 1, which has been released",
       [](Fixture& f) {
         f.call({f.alive, f.released}, {}, {});
       }},
      {"read of an own output", "reads storage 3, which does not exist (yet)",
       [](Fixture& f) { f.call({StorageNumber{3}}, {}, {{.bytes = 1}}); }},
      {"write after release", "writes storage 1, which has been released",
       [](Fixture& f) { f.call({}, {{.storage = f.released}}, {}); }},
      {"two writes of one storage", "writes storage 0 twice",
       [](Fixture& f) {
         f.call({}, {{.storage = f.alive}, {.storage = f.alive, .reads_old = false}}, {});
       }},
      {"enormous output", "is larger than any memory",
       [](Fixture& f) { f.call({}, {}, {{.bytes = kMostBytes + 1}}); }},
      {"enormous workspace", "a workspace of",
       [](Fixture& f) { f.call({}, {}, {}, 1, kMostBytes + 1); }},
      {"negative cost", "between 0 and 1e18 ns", [](Fixture& f) { f.call({}, {}, {}, -1); }},
      {"endless cost", "between 0 and 1e18 ns",
       [](Fixture& f) { f.call({}, {}, {}, std::numeric_limits<double>::infinity()); }},
      {"cost that is no number", "between 0 and 1e18 ns",
       [](Fixture& f) { f.call({}, {}, {}, std::numeric_limits<double>::quiet_NaN()); }},
      {"call of nothing", "needs the name of its operator",
       [](Fixture& f) { f.builder.add_call({.cost_ns = 1}); }},
      {"annotation of nothing", "needs a text", [](Fixture& f) { f.builder.annotate(kNoName); }},
      {"end with a pin", "at the end 1 storages are pinned",
       [](Fixture& f) { f.builder.finish(); }},
  };
  return kEvents;
}

TEST(TraceBuilder, RefusesWhatMakesNoSense) {
  for (const Senseless& event : senseless_events()) {
    SCOPED_TRACE(event.what);
    Fixture fixture;
    const std::size_t events = fixture.builder.event_count();
    try {
      event.add(fixture);
      ADD_FAILURE() << "was accepted";
    } catch (const TraceError& error) {
      EXPECT_NE(std::string(error.what()).find(event.says), std::string::npos) << error.what();
    }
    EXPECT_EQ(fixture.builder.event_count(), events) << "something was added";
    // It is as if nothing had been tried.
    fixture.call({fixture.alive}, {{.storage = fixture.alive}}, {{.bytes = 5}});
    fixture.builder.unpin(fixture.pinned);
    const Trace trace = fixture.builder.finish();
    EXPECT_EQ(trace.storages().size(), 4U);
    EXPECT_EQ(trace.call_count(), 1U);
  }
}

TEST(TraceBuilder, AStorageCanBeNamedWhileItIsThere) {
  TraceBuilder builder;
  const StorageNumber source = builder.add_source(8);
  builder.set_name(source, builder.name("first"));
  builder.set_name(source, builder.name("parameter fc.weight"));
  EXPECT_THROW(builder.set_name(StorageNumber{1}, kNoName), TraceError);
  EXPECT_THROW(builder.set_name(source, NameNumber{7}), TraceError);
  builder.release(source);
  EXPECT_THROW(builder.set_name(source, kNoName), TraceError);
  const Trace trace = builder.finish();
  EXPECT_EQ(trace.name(trace.storage(source).name), "parameter fc.weight");
}

TEST(TraceBuilder, KeepsWhatItWasGiven) {
  TraceBuilder builder;
  const StorageNumber weight = builder.add_source(40, builder.name("weight"));
  builder.begin_step();
  const std::array<StorageNumber, 2> reads{weight, weight};
  const std::array<NewStorage, 2> outputs{NewStorage{.bytes = 8}, {.bytes = 0, .is_source = true}};
  const StorageNumber first = builder.add_call({.op = builder.name("split"),
                                                .module = builder.name("layer.0"),
                                                .cost_ns = 2.5,
                                                .workspace_bytes = 64,
                                                .is_random = true,
                                                .reads = reads,
                                                .outputs = outputs});
  const std::array<TraceWrite, 2> writes{TraceWrite{.storage = weight},
                                         {.storage = first, .reads_old = false}};
  builder.add_call({.op = builder.name("update"), .is_replayable = false, .writes = writes});
  builder.release(first);
  const Trace trace = builder.finish();

  EXPECT_EQ(trace.step_count(), 1U);
  EXPECT_EQ(trace.name(trace.storage(weight).name), "weight");
  const TraceCall split = trace.call(CallNumber{0});
  EXPECT_EQ(trace.name(split.op), "split");
  EXPECT_EQ(trace.name(split.module), "layer.0");
  EXPECT_EQ(split.cost_ns, 2.5);
  EXPECT_EQ(split.workspace_bytes, 64U);
  EXPECT_TRUE(split.is_random && split.is_replayable);
  EXPECT_TRUE(std::equal(split.reads.begin(), split.reads.end(), reads.begin(), reads.end()));
  EXPECT_TRUE(split.writes.empty());
  ASSERT_EQ(split.outputs, 2U);
  EXPECT_EQ(split.output(1), StorageNumber{2});
  EXPECT_TRUE(trace.storage(split.output(1)).is_source);
  EXPECT_TRUE(trace.storage(split.output(1)).is_output);
  const TraceCall update = trace.call(CallNumber{1});
  EXPECT_TRUE(update.reads.empty());
  EXPECT_TRUE(std::equal(update.writes.begin(), update.writes.end(), writes.begin(), writes.end()));
  EXPECT_FALSE(update.is_replayable);
  EXPECT_EQ(trace.events().back(), (TraceEvent{EventKind::kRelease, 1}));

  // The builder begins again.
  EXPECT_EQ(builder.event_count(), 0U);
  EXPECT_EQ(builder.next_storage(), StorageNumber{0});
  EXPECT_EQ(builder.name("other"), NameNumber{1});
}

}  // namespace
}  // namespace coop::sim
