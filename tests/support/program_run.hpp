#pragma once

// Runs a program on a machine.

#include <cstdio>
#include <new>
#include <optional>
#include <vector>

#include "support/operator_run.hpp"

namespace coop::testing {

class ProgramRun {
 public:
  ProgramRun(const RunOptions& options, Coverage& coverage, FaultPlan& faults)
      : m_(options, coverage, faults) {}

  // What every name holds at the end; none: it is nobody's.
  using Contents = std::vector<std::optional<Content>>;

  Contents run(const ProgramText& text) {
    const Spared ours;
    for (const Event& event : text) {
      if (::testing::Test::HasFailure()) return {};
      if (m_.options.is_traced) print(event);
      perform(event);
      if (m_.options.is_stressed) m_.engine.evict_all();
      m_.validate();
    }
    Contents contents;
    for (Name name = 0; name < static_cast<Name>(m_.names.size()); ++name) {
      perform({.kind = Event::Kind::kCheck, .name = name});
      const Machine::Slot* slot = m_.find(name);
      contents.push_back(slot == nullptr ? std::nullopt : std::optional(slot->expected));
    }
    for (Name name = 0; name < static_cast<Name>(m_.names.size()); ++name) release(name);
    expect_nothing_left();
    return contents;
  }

  [[nodiscard]] const Engine& engine() const { return m_.engine; }
  [[nodiscard]] Engine& engine() { return m_.engine; }
  // Times that something did not happen for want of memory.
  [[nodiscard]] std::uint64_t out_of_memory() const { return out_of_memory_; }
  // Exceptions that were not the program's own.
  [[nodiscard]] std::uint64_t faults() const { return faults_ + m_.faults_swallowed; }

 private:
  void perform(const Event& event) {
    until_done(event.repeats, [&] { attempt(event); });
  }

  // Until it has happened so many times, or there is no memory for it. After a fault it is tried
  // again.
  template <typename Attempt>
  void until_done(int times, const Attempt& attempt) {
    for (int done = 0; done < times && !::testing::Test::HasFatalFailure();) {
      const bool had_struck = m_.faults.has_struck();
      try {
        attempt();
        ++done;
      } catch (const OutOfMemory&) {
        if (m_.faults.has_struck() == had_struck) {
          ++out_of_memory_;
          if (m_.options.is_traced) std::printf("  out of memory\n");
          ++done;
        } else {
          note_fault();
        }
      } catch (const InjectedFault&) {
        note_fault();
      } catch (const std::bad_alloc&) {
        note_fault();
      } catch (const OperatorFailed&) {
        m_.coverage.note(Seen::kOperatorFailed);
        ++done;
      }
    }
  }
  void note_fault() {
    ++faults_;
    if (m_.options.is_traced) std::printf("  a fault\n");
    m_.validate();
  }

  void attempt(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kSource:
        return add_source(event);
      case Event::Kind::kOperator:
        return run_operator(event);
      case Event::Kind::kView:
        return add_view(event.name, event.of);
      case Event::Kind::kRelease:
        return release(event.name);
      case Event::Kind::kCheck:
        return check(event.name);
      case Event::Kind::kExport:
        return export_one(event);
      case Event::Kind::kEvictAll: {
        const Exposed engines;
        return m_.engine.evict_all();
      }
    }
  }

  void add_source(const Event& event) {
    const BlockId block = m_.allocate(event.bytes, 0);
    m_.world.write(block, event.salt);
    Machine::Slot slot{
        .token = m_.world.new_storage(), .bytes = event.bytes, .expected = event.salt};
    try {
      const Exposed engines;
      slot.storage = m_.engine.add_source(slot.token, event.bytes, block);
    } catch (...) {
      m_.world.drop_storage(slot.token);
      m_.engine.free(block);
      throw;
    }
    m_.add(event.name, std::move(slot));
  }

  void run_operator(const Event& event) {
    OperatorRun(m_, event).run([&] {
      for (const Event& inner : event.inside) {
        until_done(1, [&] { OperatorRun(m_, inner).run([] {}); });
      }
    });
  }

  void add_view(Name name, Name of) {
    Machine::Slot* slot = m_.find(of);
    if (slot == nullptr) return;
    ++slot->names;
    const auto index = m_.binding(of).slot;
    m_.binding(name) = {.slot = index, .version = slot->version};
  }

  void release(Name name) {
    Machine::Slot* slot = m_.find(name);
    if (slot == nullptr) return;
    if (m_.binding(name).is_first) slot->has_lost_first_name = true;
    m_.binding(name).slot = std::nullopt;
    if (--slot->names == 0 && slot->bytes > 0) m_.drop(*slot);
  }

  void export_one(const Event& event) {
    Machine::Slot* slot = m_.find(event.name);
    if (slot == nullptr || !slot->is_held()) return;
    {
      const Exposed engines;
      m_.engine.export_storage(slot->storage);
    }
    const BlockId block = *m_.world.block_of(slot->token);
    slot->exported_at = m_.pool.info(block).offset;
    if (event.salt == 0) return;
    m_.coverage.note(Seen::kExportedWritten);
    m_.world.write(block, event.salt);
    slot->expected = event.salt;
  }

  void check(Name name) {
    const Machine::Slot* slot = m_.find(name);
    if (slot == nullptr || !slot->is_held()) return;
    note_read(m_, name);
    const bool is_deep = m_.is_evicted(*slot) && m_.current(*slot).depth >= 1000;
    {
      const Exposed engines;
      m_.engine.make_resident(slot->storage);
    }
    m_.coverage.note_if(is_deep, Seen::kLoopOfThousand);
    const auto block = m_.world.block_of(slot->token);
    ASSERT_TRUE(block);
    ASSERT_EQ(m_.world.read(*block), slot->expected) << "tensor " << name;
  }

  void expect_nothing_left() {
    m_.engine.validate();
    EXPECT_EQ(m_.engine.graph().values().size(), 0U) << "Values leak";
    EXPECT_EQ(m_.engine.graph().calls().size(), 0U) << "Calls leak";
    EXPECT_EQ(m_.engine.stats().held_by_lineage, 0U);
    EXPECT_EQ(m_.world.remembered(), 0U) << "the world's records of Calls leak";
    EXPECT_EQ(m_.world.storages(), 0U) << "the world's records of storages leak";
    EXPECT_EQ(m_.pool.held_bytes(), 0U) << "blocks leak";
  }

  Machine m_;
  std::uint64_t out_of_memory_ = 0;
  std::uint64_t faults_ = 0;
};

}  // namespace coop::testing
