#include "plugin/random_state.hpp"

#include <mutex>

namespace coop::plugin {

RandomState RandomState::of(const at::Generator& generator) {
  RandomState state(generator);
  const std::scoped_lock lock(state.generator_.mutex());
  if (generator.device().is_cpu()) {
    auto& impl = *generator.get<at::CPUGeneratorImpl>();
    state.twister_ = {.engine = impl.engine().data(),
                      .next_float = impl.next_float_normal_sample(),
                      .next_double = impl.next_double_normal_sample()};
  } else {
    state.counter_ = {.seed = generator.current_seed(), .offset = generator.get_offset()};
  }
  return state;
}

// To set a seed says more than it seems: recurrent networks begin their dropout anew then. So a generator that has
// got another seed since gets all of its state exchanged, which says nothing.
void RandomState::put_counter_back(at::Generator& generator) const {
  if (generator.current_seed() == counter_.seed) return generator.set_offset(counter_.offset);
  at::Generator other = generator.clone();
  other.set_current_seed(counter_.seed);
  other.set_offset(counter_.offset);
  generator.graphsafe_set_state(other);
}

void RandomState::put_back() const {
  at::Generator generator = generator_;  // its mutex is not to be had from a const one
  const std::scoped_lock lock(generator.mutex());
  if (!twister_) return put_counter_back(generator);
  auto& impl = *generator.get<at::CPUGeneratorImpl>();
  at::mt19937 engine;
  engine.set_data(twister_->engine);
  impl.set_engine(engine);
  impl.set_next_float_normal_sample(twister_->next_float);
  impl.set_next_double_normal_sample(twister_->next_double);
}

bool RandomState::has_moved() const {
  const RandomState now = of(generator_);
  if (!twister_) return !(now.counter_ == counter_);
  // `left_` and `next_` move with every number; the rest only follows.
  const at::mt19937_data_pod& engine = twister_->engine;
  const at::mt19937_data_pod& engine_now = now.twister_->engine;
  return engine_now.left_ != engine.left_ || engine_now.next_ != engine.next_ ||
         engine_now.state_ != engine.state_ || now.twister_->next_float != twister_->next_float ||
         now.twister_->next_double != twister_->next_double;
}

}  // namespace coop::plugin
