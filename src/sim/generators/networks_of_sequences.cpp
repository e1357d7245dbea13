// Networks whose shape follows their input: transformer, variable length, LSTM, tree.
#include <string>
#include <utility>

#include "sim/generators/generators.hpp"
#include "sim/generators/operators.hpp"

namespace coop::sim {
namespace {

constexpr std::uint64_t kWords = 8192;

class Linear {
 public:
  Linear(Training& training, const std::string& name, std::uint64_t in, std::uint64_t out)
      : training_(training),
        in_(in),
        out_(out),
        weight_(training.parameter(in * out * kNumberBytes, name + ".weight")) {}

  Tensor operator()(const Tensor& x) {
    const std::uint64_t rows = x.bytes() / (in_ * kNumberBytes);
    return training_.apply(matmul(rows, in_, out_), {x, weight_});
  }

 private:
  Training& training_;
  std::uint64_t in_;
  std::uint64_t out_;
  Tensor weight_;
};

class TransformerLayer {
 public:
  TransformerLayer(Training& training, const std::string& name, std::uint64_t width)
      : training_(training),
        name_(name),
        width_(width),
        query_(training, name + ".query", width, width),
        key_(training, name + ".key", width, width),
        value_(training, name + ".value", width, width),
        projection_(training, name + ".projection", width, width),
        expand_(training, name + ".expand", width, 4 * width),
        contract_(training, name + ".contract", 4 * width, width),
        scales_{training.parameter(2 * width * kNumberBytes, name + ".scale1"),
                training.parameter(2 * width * kNumberBytes, name + ".scale2")} {}

  Tensor operator()(const Tensor& input, std::uint64_t length) {
    const Bytes bytes = input.bytes();
    const std::uint64_t tokens = bytes / (width_ * kNumberBytes);
    training_.enter(name_ + ".attention");
    Tensor y = normalize(input, 0);
    y = training_.apply(attention(tokens, length, width_), {query_(y), key_(y), value_(y)});
    y = training_.apply(dropout(bytes), {projection_(y)});
    const Tensor x = training_.apply(add(bytes), {input, y});
    training_.enter(name_ + ".feed_forward");
    y = expand_(normalize(x, 1));
    y = contract_(training_.apply(gelu(y.bytes()), {y}));
    y = training_.apply(dropout(bytes), {y});
    return training_.apply(add(bytes), {x, y});
  }

 private:
  Tensor normalize(const Tensor& x, std::size_t which) {
    const Bytes statistics = 2 * x.bytes() / width_;
    return training_.apply(norm(x.bytes(), statistics), {x, scales_[which]});
  }

  Training& training_;
  std::string name_;
  std::uint64_t width_;
  Linear query_;
  Linear key_;
  Linear value_;
  Linear projection_;
  Linear expand_;
  Linear contract_;
  std::vector<Tensor> scales_;
};

class Transformer {
 public:
  Transformer(Training& training, const GeneratorOptions& options)
      : training_(training),
        width_(128 * training.random().between(4, 10)),
        words_(training.parameter(kWords * width_ * kNumberBytes, "words")),
        head_(training, "head", width_, kWords) {
    const std::uint64_t layers = options.layers_or(training.random().between(4, 12));
    for (std::uint64_t i = 0; i < layers; ++i) {
      layers_.emplace_back(training, "layer" + std::to_string(i), width_);
    }
  }

  void train_on(std::uint64_t sequences, std::uint64_t length) {
    const std::uint64_t tokens = sequences * length;
    const Tensor text = training_.batch(tokens * 8, "text");
    training_.enter("embedding");
    Tensor x = training_.apply(embedding(tokens, width_), {text, words_});
    for (TransformerLayer& layer : layers_) x = layer(x, length);
    training_.enter("head");
    x = head_(x);
    x = training_.apply(cross_entropy(x.bytes()), {x, text});
    training_.learn(std::move(x));
  }

 private:
  Training& training_;
  std::uint64_t width_;
  Tensor words_;
  Linear head_;
  std::vector<TransformerLayer> layers_;
};

// One moment of an LSTM: what the state becomes, given the input.
class LstmCell {
 public:
  struct State {
    Tensor hidden;
    Tensor cell;
  };

  LstmCell(Training& training, const std::string& name, std::uint64_t width) : training_(training) {
    for (const char* gate : {"input", "forget", "output", "candidate"}) {
      gates_.push_back({Linear(training, name + "." + gate + ".x", width, width),
                        Linear(training, name + "." + gate + ".h", width, width)});
    }
  }

  State operator()(const Tensor& x, const State& state) {
    const Bytes bytes = x.bytes();
    const Tensor in = gate(0, "sigmoid", x, state.hidden);
    const Tensor forget = gate(1, "sigmoid", x, state.hidden);
    const Tensor out = gate(2, "sigmoid", x, state.hidden);
    const Tensor candidate = gate(3, "tanh", x, state.hidden);
    const Tensor kept = training_.apply(multiply(bytes), {forget, state.cell});
    const Tensor added = training_.apply(multiply(bytes), {in, candidate});
    const Tensor cell = training_.apply(add(bytes), {kept, added});
    const Tensor squashed = training_.apply(activation("tanh", bytes), {cell});
    return {training_.apply(multiply(bytes), {out, squashed}), cell};
  }

 private:
  struct Gate {
    Linear from_x;
    Linear from_hidden;
  };

  Tensor gate(std::size_t which, std::string_view name, const Tensor& x, const Tensor& hidden) {
    Gate& gate = gates_[which];
    Tensor sum = gate.from_x(x);
    sum = training_.apply(add_in_place(), {sum, gate.from_hidden(hidden)});
    return training_.apply(activation(name, x.bytes()), {sum});
  }

  Training& training_;
  std::vector<Gate> gates_;
};

}  // namespace

Trace generate_transformer(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kAdam);
  {
    Transformer network(training, options);
    const std::uint64_t sequences = training.random().between(4, 12);
    const std::uint64_t length = 128 * training.random().between(2, 6);
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      network.train_on(sequences, length);
    }
  }
  return training.finish();
}

Trace generate_variable_length(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kAdam);
  {
    Transformer network(training, options);
    const std::uint64_t sequences = training.random().between(4, 12);
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      network.train_on(sequences, 8 * training.random().between(16, 96));
    }
  }
  return training.finish();
}

Trace generate_lstm(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kSgd);
  {
    Random& random = training.random();
    const std::uint64_t moments = options.layers_or(random.between(16, 48));
    const std::uint64_t width = 128 * random.between(2, 4);
    const Bytes bytes = 256 * random.between(2, 8) * width * kNumberBytes;
    LstmCell cell(training, "cell", width);
    LstmCell::State state{training.batch(bytes, "hidden"), training.batch(bytes, "cell")};
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      for (std::uint64_t i = 0; i < moments; ++i) {
        training.enter("moment" + std::to_string(i));
        state = cell(training.batch(bytes, "input"), state);
      }
      Tensor loss = training.apply(cross_entropy(bytes), {state.hidden});
      // The next step begins where this one ended, but nothing flows back into this one.
      training.begin_evaluation();
      state = {training.apply(copy(bytes), {state.hidden}),
               training.apply(copy(bytes), {state.cell})};
      training.end_evaluation();
      training.learn(std::move(loss));
    }
  }
  return training.finish();
}

Trace generate_tree(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kSgd);
  {
    Random& random = training.random();
    const std::uint64_t leaves = options.layers_or(random.between(24, 64));
    const std::uint64_t width = 128 * random.between(4, 8);
    const Bytes bytes = 128 * random.between(4, 16) * width * kNumberBytes;
    Linear left(training, "left", width, width);
    Linear right(training, "right", width, width);
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      std::vector<Tensor> parts;
      for (std::uint64_t i = 0; i < leaves; ++i) parts.push_back(training.batch(bytes, "leaf"));
      // Two neighbours become one, until one is left: every binary tree can come about.
      while (parts.size() > 1) {
        const auto at = static_cast<std::ptrdiff_t>(random.between(0, parts.size() - 2));
        const Tensor a = left(parts[static_cast<std::size_t>(at)]);
        const Tensor b = right(parts[static_cast<std::size_t>(at) + 1]);
        const Tensor sum = training.apply(add(bytes), {a, b});
        parts[static_cast<std::size_t>(at)] = training.apply(activation("tanh", bytes), {sum});
        parts.erase(parts.begin() + at + 1);
      }
      Tensor loss = training.apply(cross_entropy(bytes), {parts.front()});
      parts.clear();
      training.learn(std::move(loss));
    }
  }
  return training.finish();
}

}  // namespace coop::sim
