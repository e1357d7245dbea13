#pragma once

// Draws programs: operators of all kinds by lot, and among them the cases that look harmless, each
// on tensors that are there by chance.

#include <array>

#include "support/program_writer.hpp"

namespace coop::testing {

struct TextOptions {
  int events = 100;
  Grains largest = 8;
  std::size_t live = 24;  // names that are about alive at a time
  bool has_loops = true;  // of a thousand
  bool has_hooks = true;
  bool has_failures = true;
  double widens = 0;  // how likely something is made larger, and let go of
};

// --- the cases that look harmless ---

// y = f(x); x.relu_(), with both evicted.
inline void reader_and_change(ProgramWriter& w) {
  const Name x = w.make({w.pick()});
  const Name y = w.make({x});
  w.change(x);
  w.evict_all();
  const bool y_first = w.random().chance(0.5);
  w.check(y_first ? y : x);
  w.check(y_first ? x : y);
  w.make({x, y});
}

inline void many_changes(ProgramWriter& w, int times) {
  const Name x = w.make({w.pick()});
  w.change(x, {}, times);
  w.evict_all();
  w.check(x);
}

// a = x[0]; x.add_(1); use(a)
inline void view_before_change(ProgramWriter& w) {
  const Name x = w.make({w.pick()});
  const Name a = w.view(x);
  w.change(x);
  w.evict_all();
  w.make({a});
}

// buf.copy_(x) each step
inline void buffer_each_step(ProgramWriter& w) {
  const Name buffer = w.pick_held();
  for (int step = 0; step < 4; ++step) {
    const Name x = w.make({w.pick()});
    w.overwrite(buffer, {x});
    w.release(x);
    if (w.random().chance(0.5)) w.evict_all();
  }
  w.check(buffer);
}

// Only a view is alive, of memory that an operator allocated inside.
inline void only_a_view(ProgramWriter& w) {
  Event event = w.operation({w.pick()});
  const Name whole = w.product(event);
  event.workspace = w.draw_bytes();
  w.run(std::move(event));
  const Name part = w.view(whole);
  w.release(whole);
  w.evict_all();
  w.check(part);
}

inline void same_storage_twice(ProgramWriter& w) {
  const Name x = w.make({w.pick()});
  const Name other = w.view(x);
  const Name y = w.make({x, other});
  w.change(x, {x});            // x.add_(x)
  w.overwrite(x, {other, y});  // out= is an input
  w.evict_all();
  w.check(x);
  w.check(y);
}

// contiguous, to, reshape: a new tensor, or the same under another name.
inline void sometimes_aliased(ProgramWriter& w) {
  const Name x = w.pick();
  if (w.random().chance(0.5)) {
    w.make({x});
    return;
  }
  w.run(w.operation({x}));
  w.change(w.bytes_of(x) > 0 ? w.view(x) : w.pick_held());
}

inline void one_output_dead(ProgramWriter& w) {
  Event event = w.operation({w.pick()});
  const Name dead = w.product(event);
  const Name alive = w.product(event);
  w.run(std::move(event));
  w.release(dead);
  w.evict_all();
  w.check(alive);
}

inline void resized_output(ProgramWriter& w) {
  const Name x = w.make({w.pick()});
  Event event = w.operation({x});
  event.makes.push_back({.name = kNobody, .bytes = w.draw_bytes()});
  event.resizes = x;
  w.text.push_back(std::move(event));
  w.evict_all();
  w.check(x);
}

inline void zero_bytes(ProgramWriter& w) {
  Event event = w.operation({w.pick()});
  const Name empty = w.product(event, 0);
  const Name full = w.product(event);
  w.run(std::move(event));
  w.change(empty, {full});
  const Name y = w.make({empty, full});
  w.evict_all();
  w.check(y);
  w.check(full);
}

// The same weights twice in a forward pass, then an update, then used again before anything is
// dropped.
inline void parameter_updated_before_backward(ProgramWriter& w) {
  const Name weight = w.source();
  const Name first = w.make({weight, w.pick()});
  const Name tied = w.make({first, weight});
  if (w.random().chance(0.5)) w.release(first);
  w.evict_all();
  w.change(weight, {w.pick()});
  const Name second = w.make({weight, tied});
  const Name gradient = w.make({tied, second, weight});
  w.change(weight, {gradient});
  w.release(gradient);
  w.evict_all();
  w.check(second);
  w.check(tied);
}

// A hidden state, an average and a sum of losses go from step to step; the batches do not.
inline void carried_over_steps(ProgramWriter& w) {
  const Name average = w.source();
  Name hidden = w.make({w.pick()});
  for (int step = w.random().between(2, 5); step > 0; --step) {
    const Name batch = w.source();
    const Name next = w.make({hidden, batch});
    w.release(hidden);
    w.release(batch);
    w.change(average, {next});
    hidden = next;
  }
  w.evict_all();
  w.check(hidden);
  w.check(average);
}

// Several Sources are written by one operator, each with others that are made from it.
inline void fused_update(ProgramWriter& w) {
  const Name a = w.source();
  const Name b = w.source();
  const Name y = w.make({a, b});
  const Name z = w.make({y});
  if (w.random().chance(0.5)) w.release(y);
  w.evict_all();
  Event event = w.operation({z});
  event.writes = {{.name = a}, {.name = b, .reads_old = w.random().chance(0.7)}};
  w.run(std::move(event));
  w.evict_all();
  w.check(z);
}

inline void exported_and_read(ProgramWriter& w) {
  const Name x = w.make({w.pick()});
  const Name before = w.make({x});
  w.export_one(x);
  const Name y = w.make({x});
  w.evict_all();
  w.check(before);
  w.check(y);
  if (w.random().chance(0.5)) w.change(x);
}

// c = x.float(), and x goes: what is needed later is larger than what it is made from.
inline void widened(ProgramWriter& w) {
  const auto make = [&](Name from, Bytes bytes) {
    Event event = w.operation({from});
    const Name name = w.product(event, bytes);
    w.run(std::move(event));
    return name;
  };
  const Name x = make(w.pick(), kGrainBytes);
  make(x, to_bytes(w.random().between(2, 8)));
  w.release(x);
}

// --- everything else ---

inline Event draw_operator(ProgramWriter& w, const TextOptions& options, bool is_inside = false) {
  Random& random = w.random();
  Event event = w.operation();
  for (int n = random.between(0, 3); n > 0; --n) event.reads.push_back(w.pick());
  const auto is_written = [&](Name name) {
    return std::any_of(event.writes.begin(), event.writes.end(),
                       [&](const Target& target) { return w.are_same(target.name, name); });
  };
  if (random.chance(0.35)) {
    for (int n = random.chance(0.2) ? 2 : 1; n > 0; --n) {
      const Name target = w.pick_held();
      if (!is_written(target)) event.writes.push_back({target, random.chance(0.7)});
    }
  }
  if (random.chance(0.05)) {
    const Name effect = w.pick_held();
    if (!is_written(effect)) event.effect = effect;
  }
  if (!is_inside) {
    const int made = event.writes.empty() ? random.between(1, 3) : random.between(0, 1);
    for (int i = 0; i < made; ++i) {
      w.product(event, random.chance(0.04) ? 0 : w.draw_bytes());
      event.makes.back().is_repeatable = !random.chance(0.04);
    }
  }
  if (random.chance(0.1)) event.workspace = w.draw_bytes();
  event.is_random = random.chance(0.1);
  event.is_replayable = random.chance(0.9);
  event.fails = options.has_failures && random.chance(0.02);
  return event;
}

inline void run_drawn_operator(ProgramWriter& w, const TextOptions& options) {
  Event event = draw_operator(w, options);
  if (options.has_hooks && w.random().chance(0.06)) {
    // Often at what the operator itself uses.
    Event hook = draw_operator(w, options, true);
    if (w.random().chance(0.5) && !event.writes.empty()) hook.reads = {event.writes[0].name};
    if (w.random().chance(0.5) && !event.reads.empty() && w.bytes_of(event.reads[0]) > 0) {
      hook.writes = {{event.reads[0], w.random().chance(0.7)}};
      hook.effect = kNobody;
    }
    event.inside.push_back(std::move(hook));
  }
  w.run(std::move(event));
}

inline void draw_event(ProgramWriter& w, const TextOptions& options) {
  constexpr std::array kCases{reader_and_change,
                              view_before_change,
                              buffer_each_step,
                              only_a_view,
                              same_storage_twice,
                              sometimes_aliased,
                              one_output_dead,
                              resized_output,
                              zero_bytes,
                              carried_over_steps,
                              fused_update,
                              exported_and_read,
                              widened,
                              parameter_updated_before_backward};
  Random& random = w.random();
  const double lot = random.unit();
  if (lot < 0.08) {
    w.source();
  } else if (lot < 0.20 || w.live().size() > options.live) {
    w.release(w.live()[random.below(w.live().size())]);
  } else if (lot < 0.27) {
    w.check(w.pick());
  } else if (lot < 0.28) {
    w.export_one(w.pick_held());
  } else if (lot < 0.31) {
    w.view(w.pick());
  } else if (lot < 0.34) {
    kCases[random.below(kCases.size())](w);
  } else if (lot < 0.34 + options.widens) {
    widened(w);
  } else {
    run_drawn_operator(w, options);
  }
}

inline ProgramText draw_program(Random& random, const TextOptions& options) {
  ProgramWriter writer(random, options.largest);
  if (options.has_loops && random.chance(0.04)) {
    writer.source();
    many_changes(writer, random.chance(0.3) ? random.between(1000, 1100) : random.between(2, 50));
  }
  while (static_cast<int>(writer.text.size()) < options.events) {
    // Some have to have memory.
    while (std::count_if(writer.live().begin(), writer.live().end(),
                         [&](Name name) { return writer.bytes_of(name) > 0; }) < 3) {
      writer.source();
    }
    draw_event(writer, options);
  }
  return std::move(writer.text);
}

}  // namespace coop::testing
