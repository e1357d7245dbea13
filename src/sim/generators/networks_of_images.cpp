// Networks in which layer follows layer: chain, residual, random path, evaluation.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/generators/generators.hpp"
#include "sim/generators/operators.hpp"

namespace coop::sim {
namespace {

constexpr std::uint64_t kClasses = 1000;

// Convolution, norm and ReLU where it is.
class ConvolutionUnit {
 public:
  ConvolutionUnit(Training& training, const std::string& name, Images in, Images out,
                  std::uint64_t kernel)
      : training_(training),
        name_(name),
        in_(in),
        out_(out),
        kernel_(kernel),
        weight_(training.parameter(kernel * kernel * in.channels * out.channels * kNumberBytes,
                                   name + ".weight")),
        scale_(training.parameter(2 * out.channels * kNumberBytes, name + ".scale")),
        batches_(training.batch(8, name + ".batches")) {}

  Tensor operator()(const Tensor& x, bool has_relu = true) {
    training_.enter(name_);
    Tensor y = training_.apply(convolution(in_, out_, kernel_), {x, weight_});
    y = training_.apply(norm(out_.bytes(), 2 * out_.channels * kNumberBytes), {y, scale_});
    training_.update_buffer("count_", batches_, {});
    if (has_relu) y = training_.apply(relu_in_place(), {y});
    return y;
  }

 private:
  Training& training_;
  std::string name_;
  Images in_;
  Images out_;
  std::uint64_t kernel_;
  Tensor weight_;
  Tensor scale_;
  Tensor batches_;
};

// Classes from features, and how wrong they are.
class Classifier {
 public:
  Classifier(Training& training, Images in)
      : training_(training),
        in_(in),
        weight_(training.parameter(in.channels * kClasses * kNumberBytes, "classifier.weight")) {}

  Tensor loss(const Tensor& x, const Tensor& labels) {
    training_.enter("classifier");
    Operator pool = activation("mean", in_.count * in_.channels * kNumberBytes);
    pool.keeps_output = false;
    const Tensor features = training_.apply(pool, {x});
    const Tensor logits =
        training_.apply(matmul(in_.count, in_.channels, kClasses), {features, weight_});
    return training_.apply(cross_entropy(in_.count * kClasses * kNumberBytes), {logits, labels});
  }

 private:
  Training& training_;
  Images in_;
  Tensor weight_;
};

class ResidualBlock {
 public:
  ResidualBlock(Training& training, const std::string& name, Images in, Images out)
      : training_(training),
        first_(training, name + ".conv1", in, out, 3),
        second_(training, name + ".conv2", out, out, 3) {
    if (in.bytes() != out.bytes()) shortcut_.emplace_back(training, name + ".down", in, out, 1);
  }

  Tensor operator()(const Tensor& x) {
    const Tensor y = second_(first_(x), false);
    const Tensor shortcut = shortcut_.empty() ? x : shortcut_.front()(x, false);
    return training_.apply(relu_in_place(), {training_.apply(add_in_place(), {y, shortcut})});
  }

 private:
  Training& training_;
  ConvolutionUnit first_;
  ConvolutionUnit second_;
  std::vector<ConvolutionUnit> shortcut_;  // none, or one where the shape changes
};

class ResidualNetwork {
 public:
  ResidualNetwork(Training& training, const GeneratorOptions& options)
      : training_(training),
        input_{training.random().between(16, 48), 8 * training.random().between(12, 28), 3},
        stem_(training, "stem", input_, features(0), 7),
        classifier_(training, features(kStages - 1)) {
    const std::uint64_t blocks = options.layers_or(training.random().between(8, 20));
    Images in = features(0);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const Images out = features(i * kStages / blocks);
      const std::string name = "block" + std::to_string(i);
      blocks_.emplace_back(training, name, std::exchange(in, out), out);
    }
  }

  Tensor loss() {
    Tensor x = training_.batch(input_.bytes(), "images");
    const Tensor labels = training_.batch(input_.count * 8, "labels");
    x = stem_(x);
    for (ResidualBlock& block : blocks_) x = block(x);
    return classifier_.loss(x, labels);
  }

 private:
  static constexpr std::uint64_t kStages = 4;
  // Each stage has half the side and twice the channels.
  [[nodiscard]] Images features(std::uint64_t stage) const {
    return {input_.count, std::max<std::uint64_t>(input_.side >> (stage + 1), 1),
            std::uint64_t{64} << stage};
  }

  Training& training_;
  Images input_;
  ConvolutionUnit stem_;
  Classifier classifier_;
  std::vector<ResidualBlock> blocks_;
};

// Four ways through a layer, as SPOS has them: three kernels and one of three convolutions.
class ChoiceLayer {
 public:
  ChoiceLayer(Training& training, const std::string& name, Images images) {
    const auto add = [&](std::vector<ConvolutionUnit>& path, std::uint64_t kernel) {
      const std::string part = std::to_string(paths_.size()) + "." + std::to_string(path.size());
      path.emplace_back(training, name + ".path" + part, images, images, kernel);
    };
    for (const std::uint64_t kernel : {3U, 5U, 7U}) {
      std::vector<ConvolutionUnit> path;
      add(path, kernel);
      paths_.push_back(std::move(path));
    }
    std::vector<ConvolutionUnit> path;
    for (int i = 0; i < 3; ++i) add(path, 3);
    paths_.push_back(std::move(path));
  }

  Tensor operator()(const Tensor& input, Random& random) {
    Tensor x = input;
    for (ConvolutionUnit& unit : paths_[random.between(0, paths_.size() - 1)]) x = unit(x);
    return x;
  }

 private:
  std::vector<std::vector<ConvolutionUnit>> paths_;
};

}  // namespace

Trace generate_chain(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kSgd);
  {
    Random& random = training.random();
    const std::uint64_t layers = options.layers_or(random.between(20, 60));
    const std::uint64_t rows = 256 * random.between(8, 64);
    const std::uint64_t width = 256 * random.between(2, 8);
    const Bytes bytes = rows * width * kNumberBytes;
    std::vector<Tensor> weights;
    for (std::uint64_t i = 0; i < layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      weights.push_back(training.parameter(width * width * kNumberBytes, name + ".weight"));
    }
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      Tensor x = training.batch(bytes, "rows");
      for (std::uint64_t i = 0; i < layers; ++i) {
        training.enter("layer" + std::to_string(i));
        x = training.apply(matmul(rows, width, width), {x, weights[i]});
        x = training.apply(activation("tanh", bytes), {x});
      }
      Operator mean = activation("mean", kNumberBytes);
      mean.keeps_output = false;
      x = training.apply(mean, {x});
      training.learn(std::move(x));
    }
  }
  return training.finish();
}

Trace generate_residual(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kSgd);
  {
    ResidualNetwork network(training, options);
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      training.learn(network.loss());
    }
  }
  return training.finish();
}

Trace generate_random_path(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kSgd);
  {
    Random& random = training.random();
    const Images images{32 * random.between(2, 6), 32, 16 * random.between(2, 6)};
    const Images input{images.count, images.side, 3};
    const std::uint64_t layers = options.layers_or(random.between(10, 24));
    ConvolutionUnit stem(training, "stem", input, images, 3);
    Classifier classifier(training, images);
    std::vector<ChoiceLayer> choices;
    for (std::uint64_t i = 0; i < layers; ++i) {
      choices.emplace_back(training, "layer" + std::to_string(i), images);
    }
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      Tensor x = training.batch(input.bytes(), "images");
      const Tensor labels = training.batch(images.count * 8, "labels");
      x = stem(x);
      for (ChoiceLayer& layer : choices) x = layer(x, random);
      Tensor loss = classifier.loss(x, labels);
      x.reset();
      training.learn(std::move(loss));
    }
  }
  return training.finish();
}

Trace generate_evaluation(const GeneratorOptions& options) {
  Training training(options.seed, Optimizer::kSgd);
  {
    ResidualNetwork network(training, options);
    const Tensor total = training.batch(kNumberBytes, "total");
    for (std::uint64_t step = 0; step < options.steps; ++step) {
      training.begin_step();
      training.learn(network.loss());
      training.average_parameters();
      training.begin_evaluation();
      for (int i = 0; i < 2; ++i) training.update_buffer("add_", total, {network.loss()});
      training.end_evaluation();
    }
  }
  return training.finish();
}

}  // namespace coop::sim
