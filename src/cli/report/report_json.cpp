#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands/result_fields.hpp"
#include "cli/report/groups.hpp"
#include "cli/report/report.hpp"
#include "cli/text/json.hpp"
#include "core/engine/out_of_memory.hpp"

namespace coop::cli {
namespace {

std::uint64_t whole(double ns) {
  return static_cast<std::uint64_t>(std::llround(std::max(ns, 0.0)));
}

class ReportJson {
 public:
  ReportJson(const ReportedRun& run, std::size_t most_blocks)
      : run_(run), trace_(run.loaded.trace), story_(run.story), most_blocks_(most_blocks) {}

  std::string write() {
    json_.begin_object();
    write_result_fields(json_, run_.loaded, run_.policy, run_.result);
    json_.field("is_floor_known", run_.is_floor_known);
    write_smallest_budget(json_, run_.smallest);
    json_.field("name", run_.loaded.name);
    json_.field("has_modules", story_.has_modules());
    json_.field("has_steps", run_.has_steps());
    json_.field("step_ns", whole(story_.length_ns()));
    write_steps();
    write_advice();
    json_.key("fillings");
    json_.begin_array();
    for (std::size_t i = 0; i < kFillings; ++i) json_.value(label_of(static_cast<Filling>(i)));
    json_.end_array();
    write_blocks();
    write_remarks();
    write_moments();
    write_fullest();
    write_lost();
    if (run_.tightest() != nullptr) write_tightest(*run_.tightest());
    write_places();
    json_.end_object();
    return json_.finish();
  }

 private:
  std::string name_of(sim::NameNumber number) const { return trace_.name(number); }

  // Without names nobody can tell parameters from the rest of what was there. Readers ask for them all the same.
  [[nodiscard]] const char* label_of(Filling filling) const {
    const bool is_unnamed = filling == Filling::kFromOutside && !story_.has_names();
    return is_unnamed ? "there before: parameters, optimizer state, batches" : describe(filling);
  }

  // --- the run ---

  void write_steps() {
    json_.objects("all_steps", run_.result.steps, [&](const sim::StepResult& step) {
      json_.field("base_ns", step.base_ns);
      json_.field("recomputed_ns", step.recomputed_ns);
      json_.field("moving_ns", step.moving_ns);
    });
  }

  void write_advice() {
    json_.key("advice");
    json_.begin_array();
    for (const std::string& text : advice_on(run_)) json_.value(text);
    json_.end_array();
  }

  // --- the pool ---

  [[nodiscard]] std::vector<const StoryBlock*> blocks_to_show() const {
    std::vector<const StoryBlock*> shown;
    for (const StoryBlock& block : story_.blocks()) {
      if (block.area() > 0) shown.push_back(&block);
    }
    if (shown.size() <= most_blocks_) return shown;
    std::stable_sort(shown.begin(), shown.end(), [](const StoryBlock* a, const StoryBlock* b) {
      return a->area() > b->area();
    });
    shown.resize(most_blocks_);
    return shown;
  }

  [[nodiscard]] std::size_t drawable() const {
    const auto& all = story_.blocks();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const StoryBlock& block) { return block.area() > 0; }));
  }

  // A column for each fact: numbers in a row take least room.
  template <typename Blocks, typename Figure>
  void write_column(std::string_view name, const Blocks& blocks, Figure&& figure) {
    json_.key(name);
    json_.begin_array();
    for (const auto& block : blocks) json_.value(std::uint64_t{figure(block)});
    json_.end_array();
  }

  void write_blocks() {
    using Block = const StoryBlock*;
    const std::vector<Block> blocks = blocks_to_show();
    json_.key("blocks");
    json_.begin_object();
    json_.field("left_out", drawable() - blocks.size());
    write_column("begin_ns", blocks, [](Block it) { return whole(it->begin_ns); });
    write_column("end_ns", blocks, [](Block it) { return whole(it->end_ns); });
    write_column("offset", blocks, [](Block it) { return it->offset; });
    write_column("bytes", blocks, [](Block it) { return it->bytes; });
    write_column("filling", blocks,
                 [](Block it) { return static_cast<std::uint64_t>(it->filling); });
    write_column("place", blocks, [&](Block it) { return places_.number(it->made_by); });
    write_column("name", blocks, [&](Block it) { return names_.number(name_of(it->name)); });
    write_column("storage", blocks, [](Block it) { return it->storage; });
    write_column("again", blocks, [](Block it) { return it->times_again; });
    json_.end_object();
    std::vector<std::size_t> evicted;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i]->is_evicted) evicted.push_back(i);
    }
    json_.key("evicted_blocks");
    json_.begin_object();
    write_column("block", evicted, [](std::size_t i) { return i; });
    write_column("for_place", evicted,
                 [&](std::size_t i) { return places_.number(blocks[i]->evicted_for); });
    write_column("for_bytes", evicted, [&](std::size_t i) { return blocks[i]->evicted_for_bytes; });
    write_column("return_ns", evicted, [&](std::size_t i) { return whole(blocks[i]->return_ns); });
    json_.end_object();
  }

  void write_places() {
    json_.objects("places", places_.list(), [&](const Place& place) {
      json_.field("op", name_of(place.op));
      json_.field("module", name_of(place.module));
    });
    json_.key("names");
    json_.begin_array();
    for (const std::string& name : names_.list()) json_.value(name);
    json_.end_array();
  }

  void write_remarks() {
    json_.objects("remarks", story_.remarks(), [&](const sim::TimeMark& mark) {
      json_.field("ns", whole(mark.ns));
      json_.field("text", name_of(mark.text));
    });
  }

  // --- how much, when ---

  void write_moments() {
    json_.key("moments");
    json_.begin_object();
    json_.key("held");
    json_.begin_array();
    for (std::size_t i = 0; i < kFillings; ++i) {
      json_.begin_array();
      for (const Moment& moment : story_.moments()) json_.value(moment.held[i]);
      json_.end_array();
    }
    json_.end_array();
    write_column("needed", story_.moments(), [](const Moment& it) { return it.needed; });
    json_.end_object();
  }

  void write_groups(std::string_view name, const std::vector<Group>& groups) {
    json_.objects(name, groups, [&](const Group& group) {
      json_.field("title", group.title);
      json_.field("times", group.times);
      json_.field("bytes", group.bytes);
      json_.field("ns", group.ns);
    });
  }

  void write_fullest() {
    const Moment& fullest = story_.fullest();
    const Place running = story_.running_at(fullest);
    Groups ops;
    Groups modules;
    for (const StoryBlock* block : story_.blocks_at(fullest)) {
      const bool is_kept = block->filling < Filling::kLasting;
      const std::string op = is_kept                             ? label_of(block->filling)
                             : block->made_by.op == sim::kNoName ? "from outside"
                                                                 : name_of(block->made_by.op);
      for (Group* group : {&ops.at(op), &modules.at(module_of(*block))}) {
        ++group->times;
        group->bytes += block->bytes;
      }
    }
    const auto by_bytes = [](const Group& group) { return group.bytes; };
    json_.key("fullest");
    json_.begin_object();
    json_.field("ns", whole(fullest.ns));
    json_.field("bytes", fullest.all_held);
    json_.field("op", name_of(running.op));
    json_.field("module", name_of(running.module));
    write_column("held", fullest.held, [](Bytes bytes) { return bytes; });
    write_groups("ops", ops.most_first(by_bytes));
    write_groups("modules", modules.most_first(by_bytes));
    json_.end_object();
  }

  // A parameter is its module's, too: "parameter layer.0.weight", "state layer.0.weight.exp_avg".
  std::string module_of(const StoryBlock& block) const {
    if (block.filling == Filling::kState || block.made_by.module == sim::kNoName) {
      const std::string name = name_of(block.name);
      const std::size_t begin = std::min(name.find(' '), name.size());
      std::size_t end = name.find_last_of('.');
      if (block.filling == Filling::kState && end != std::string::npos) {
        end = name.find_last_of('.', end - 1);
      }
      if (end == std::string::npos || end < begin) return "";
      return without_numbers(name.substr(begin + 1, end - begin - 1));
    }
    return without_numbers(name_of(block.made_by.module));
  }

  // --- what it cost ---

  void write_lost() {
    Groups ops;
    Groups modules;
    for (const Repetition& it : story_.repetitions()) {
      const std::string module = without_numbers(name_of(it.place.module));
      for (Group* group : {&ops.at(name_of(it.place.op)), &modules.at(module)}) {
        group->times += it.times;
        group->ns += it.ns;
      }
    }
    const auto by_time = [](const Group& group) { return group.ns; };
    json_.key("lost");
    json_.begin_object();
    write_groups("ops", ops.most_first(by_time));
    write_groups("modules", modules.most_first(by_time));
    json_.end_object();
  }

  void write_tightest(const sim::FailedAt& failure) {
    const MemoryReport& memory = failure.memory;
    json_.key("tightest");
    json_.begin_object();
    json_.field("budget_bytes", memory.pool);
    json_.field("where", place_of(failure));
    json_.field("module", module_of_event(failure.event));
    json_.field("requested_bytes", memory.requested);
    json_.field("largest_room_bytes", memory.largest_room);
    json_.field("free_bytes", memory.free);
    json_.field("lasting_bytes", memory.lasting);
    std::vector<std::size_t> holders;
    for (std::size_t i = 0; i < kHolders; ++i) {
      if (memory.held[i].blocks > 0) holders.push_back(i);
    }
    json_.objects("held", holders, [&](std::size_t i) {
      json_.field("holder", i);
      json_.field("what", describe(static_cast<Holder>(i)));
      json_.field("blocks", memory.held[i].blocks);
      json_.field("bytes", memory.held[i].bytes);
    });
    json_.objects("largest", memory.largest, [&](const LargeBlock& block) {
      json_.field("title", title_of(run_, block.storage));
      json_.field("what", describe(block.holder));
      json_.field("bytes", block.bytes);
    });
    json_.end_object();
  }

  [[nodiscard]] std::string module_of_event(std::size_t event) const {
    if (event >= trace_.events().size()) return "";
    const sim::TraceEvent& at = trace_.events()[event];
    const bool is_call = at.kind == sim::EventKind::kCall || at.kind == sim::EventKind::kFinish;
    return is_call ? name_of(trace_.call(at.call()).module) : "";
  }

  const ReportedRun& run_;
  const sim::Trace& trace_;
  const StepStory& story_;
  std::size_t most_blocks_;
  JsonWriter json_;
  Numbered<Place> places_;
  Numbered<std::string> names_;
};

}  // namespace

std::string report_json(const ReportedRun& run, std::size_t most_blocks) {
  return ReportJson(run, most_blocks).write();
}

}  // namespace coop::cli
