#include "plugin/random_state.hpp"

#include "plugin/without_python.hpp"

namespace coop::plugin {

void TurnToDraw::take() {
  static auto& mutex = *new std::recursive_mutex;  // threads may outlive main()
  lock_ = std::unique_lock(mutex, std::try_to_lock);
  if (lock_) return;
  // Who draws may be an operator that is written in Python.
  const WithoutPython released;
  lock_.lock();
}

RandomState::Twister RandomState::twister_of(const at::Generator& generator) {
  auto& impl = *generator.get<at::CPUGeneratorImpl>();
  return {.engine = impl.engine().data(),
          .next_float = impl.next_float_normal_sample(),
          .next_double = impl.next_double_normal_sample()};
}

RandomState RandomState::of(const at::Generator& generator) {
  RandomState state(generator);
  const std::scoped_lock lock(state.generator_.mutex());
  if (generator.device().is_cpu()) {
    state.twister_ = twister_of(generator);
  } else {
    state.counter_ = {.seed = generator.current_seed(), .offset = generator.get_offset()};
  }
  return state;
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

// To set a GPU's seed or its counter says more than it seems: cuDNN's recurrent networks begin their dropout anew
// then. So its whole state is exchanged for another object, which says nothing, and then put back.
RandomStateGuard::RandomStateGuard(const RandomState& then) : generator_(then.generator_) {
  const std::scoped_lock lock(generator_.mutex());
  if (then.twister_) {
    twister_ = RandomState::twister_of(generator_);
    put(generator_, *then.twister_);
    return;
  }
  counter_ = generator_.graphsafe_get_state();
  at::Generator other = generator_.clone();
  other.set_current_seed(then.counter_.seed);
  other.set_offset(then.counter_.offset);
  generator_.graphsafe_set_state(other);
}

RandomStateGuard::~RandomStateGuard() {
  const std::scoped_lock lock(generator_.mutex());
  if (twister_) {
    put(generator_, *twister_);
  } else {
    generator_.graphsafe_set_state(counter_);
  }
}

void RandomStateGuard::put(at::Generator& generator, const RandomState::Twister& twister) {
  auto& impl = *generator.get<at::CPUGeneratorImpl>();
  at::mt19937 engine;
  engine.set_data(twister.engine);
  impl.set_engine(engine);
  impl.set_next_float_normal_sample(twister.next_float);
  impl.set_next_double_normal_sample(twister.next_double);
}

}  // namespace coop::plugin
