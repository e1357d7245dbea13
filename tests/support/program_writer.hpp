#pragma once

// Writes a program: keeps track of which names there are, and how many of each storage.

#include <algorithm>
#include <utility>
#include <vector>

#include "support/program_text.hpp"
#include "support/random_cases.hpp"

namespace coop::testing {

class ProgramWriter {
 public:
  explicit ProgramWriter(Random& random, Grains largest) : random_(random), largest_(largest) {}

  ProgramText text;

  // --- what there is ---

  [[nodiscard]] const std::vector<Name>& live() const { return live_; }
  Name pick() { return live_[random_.below(live_.size())]; }
  // One that has memory.
  Name pick_held() {
    for (;;) {
      const Name name = pick();
      if (bytes_of(name) > 0) return name;
    }
  }
  [[nodiscard]] bool are_same(Name a, Name b) const {
    return storages_[static_cast<std::size_t>(a)] == storages_[static_cast<std::size_t>(b)];
  }
  [[nodiscard]] Bytes bytes_of(Name name) const { return bytes_[static_cast<std::size_t>(name)]; }
  // How many there have been.
  [[nodiscard]] Name names() const { return static_cast<Name>(bytes_.size()); }
  Random& random() { return random_; }
  Bytes draw_bytes() { return to_bytes(random_.between(1, largest_)); }

  // --- events ---

  Name source() {
    const Bytes bytes = draw_bytes();
    const Name name = add_name(bytes);
    text.push_back(
        {.kind = Event::Kind::kSource, .name = name, .bytes = bytes, .salt = random_.next()});
    return name;
  }
  Name view(Name of) {
    const Name name = add_name(bytes_of(of));
    storages_.back() = storages_[static_cast<std::size_t>(of)];
    text.push_back({.kind = Event::Kind::kView, .name = name, .of = of});
    return name;
  }
  void release(Name name) {
    live_.erase(std::find(live_.begin(), live_.end(), name));
    text.push_back({.kind = Event::Kind::kRelease, .name = name});
  }
  void check(Name name) { text.push_back({.kind = Event::Kind::kCheck, .name = name}); }
  // Whoever got the address may write there at once.
  void export_one(Name name) {
    text.push_back({.kind = Event::Kind::kExport,
                    .name = name,
                    .salt = random_.chance(0.5) ? random_.next() : 0});
  }
  void evict_all() { text.push_back({.kind = Event::Kind::kEvictAll}); }

  // An operator to be filled in.
  Event operation(std::vector<Name> reads = {}) {
    Event event{.salt = random_.next(), .reads = std::move(reads)};
    event.cost = 1 + 1000 * random_.unit();
    return event;
  }
  // Its products are there from now on.
  Event& run(Event event) {
    for (const Product& product : event.makes) live_.push_back(product.name);
    text.push_back(std::move(event));
    return text.back();
  }
  // A product, of a size that is drawn, of an operator that is still to be run.
  Name& product(Event& event) { return product(event, draw_bytes()); }
  Name& product(Event& event, Bytes bytes) {
    event.makes.push_back({.name = add_name(bytes), .bytes = bytes});
    live_.pop_back();
    return event.makes.back().name;
  }

  // y = f(reads)
  Name make(std::vector<Name> reads) {
    Event event = operation(std::move(reads));
    const Name name = product(event);
    run(std::move(event));
    return name;
  }
  // x.add_(reads)
  void change(Name target, std::vector<Name> reads = {}, int repeats = 1) {
    Event event = operation(std::move(reads));
    event.writes.push_back({.name = target, .reads_old = true});
    event.repeats = repeats;
    run(std::move(event));
  }
  // x.copy_(f(reads))
  void overwrite(Name target, std::vector<Name> reads) {
    Event event = operation(std::move(reads));
    event.writes.push_back({.name = target, .reads_old = false});
    run(std::move(event));
  }

 private:
  Name add_name(Bytes bytes) {
    const Name name = static_cast<Name>(bytes_.size());
    bytes_.push_back(bytes);
    storages_.push_back(name);
    live_.push_back(name);
    return name;
  }

  Random& random_;
  Grains largest_;
  std::vector<Name> live_;
  std::vector<Bytes> bytes_;    // by name
  std::vector<Name> storages_;  // by name: the storage's first name
};

}  // namespace coop::testing
