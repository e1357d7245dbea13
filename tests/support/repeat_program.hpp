#pragma once

// A program whose steps repeat: the same events again, with new names for what each step makes.

#include <utility>
#include <vector>

#include "support/draw_program.hpp"

namespace coop::testing {

// Names from `first` on become those of another step.
inline Event renamed(Event event, Name first, Name shift) {
  const auto rename = [&](Name& name) {
    if (name >= first) name += shift;
  };
  const auto rename_all = [&](Event& one) {
    rename(one.name);
    rename(one.of);
    rename(one.effect);
    rename(one.resizes);
    for (Name& name : one.reads) rename(name);
    for (Target& target : one.writes) rename(target.name);
    for (Product& product : one.makes) rename(product.name);
  };
  rename_all(event);
  for (Event& inner : event.inside) rename_all(inner);  // which have none inside
  return event;
}

struct RepeatOptions {
  TextOptions step;
  int steps = 6;
  double departures = 0;  // how likely it is that a step leaves something out
};

// Some sources that stay, then steps that are the same but for what some of them leave out.
inline ProgramText draw_repeated_program(Random& random, const RepeatOptions& options) {
  ProgramWriter writer(random, options.step.largest);
  for (int i = 0; i < 4; ++i) writer.source();
  const std::size_t first_event = writer.text.size();
  const auto first_name = static_cast<Name>(writer.live().size());
  while (static_cast<int>(writer.text.size() - first_event) < options.step.events) {
    if (writer.live().size() < 4) writer.source();
    draw_event(writer, options.step);
  }
  const std::vector<Name> left = writer.live();
  for (const Name name : left) {
    if (name >= first_name) writer.release(name);
  }
  ProgramText text(writer.text.begin(),
                   writer.text.begin() + static_cast<std::ptrdiff_t>(first_event));
  const std::vector<Event> step(writer.text.begin() + static_cast<std::ptrdiff_t>(first_event),
                                writer.text.end());
  const Name names = writer.names();
  for (int i = 0; i < options.steps; ++i) {
    const bool departs = random.chance(options.departures);
    for (const Event& event : step) {
      const bool is_left_out =
          departs && event.kind != Event::Kind::kRelease && random.chance(0.05);
      if (!is_left_out) text.push_back(renamed(event, first_name, i * (names - first_name)));
    }
  }
  return text;
}

}  // namespace coop::testing
