#include "plugin/random_state.hpp"

#include <mutex>

namespace coop::plugin {

void RandomState::take(at::CPUGeneratorImpl& impl) {
  engine_ = impl.engine().data();
  next_float_ = impl.next_float_normal_sample();
  next_double_ = impl.next_double_normal_sample();
}

RandomState RandomState::of(const at::Generator& generator) {
  RandomState state(generator);
  const std::scoped_lock lock(state.generator_.mutex());
  state.take(*generator.get<at::CPUGeneratorImpl>());
  return state;
}

void RandomState::put_back() const {
  at::Generator generator = generator_;  // its mutex is not to be had from a const one
  const std::scoped_lock lock(generator.mutex());
  auto& impl = *generator.get<at::CPUGeneratorImpl>();
  at::mt19937 engine;
  engine.set_data(engine_);
  impl.set_engine(engine);
  impl.set_next_float_normal_sample(next_float_);
  impl.set_next_double_normal_sample(next_double_);
}

bool RandomState::has_moved() const {
  const RandomState now = of(generator_);
  // `left_` and `next_` move with every number; the rest only follows.
  return now.engine_.left_ != engine_.left_ || now.engine_.next_ != engine_.next_ ||
         now.engine_.state_ != engine_.state_ || now.next_float_ != next_float_ ||
         now.next_double_ != next_double_;
}

}  // namespace coop::plugin
