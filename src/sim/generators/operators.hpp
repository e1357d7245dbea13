#pragma once

// The operators of the synthetic networks, with sizes and costs as in training with 4-byte numbers.

#include "sim/generators/training.hpp"

namespace coop::sim {

inline constexpr Bytes kNumberBytes = 4;

// Images: how many, of which width and height, with how many channels.
struct Images {
  std::uint64_t count = 0;
  std::uint64_t side = 0;
  std::uint64_t channels = 0;
  [[nodiscard]] Bytes bytes() const { return count * side * side * channels * kNumberBytes; }
};

// From these images to so many channels, every `stride`-th pixel.
inline Operator convolution(const Images& in, const Images& out, std::uint64_t kernel) {
  const std::uint64_t pixels = out.count * out.side * out.side;
  return {.name = "convolution",
          .flops = 2 * pixels * kernel * kernel * in.channels * out.channels,
          .output_bytes = out.bytes(),
          .workspace_bytes = out.bytes() / 4,
          .keeps_inputs = true};
}

// [rows, inner] times [inner, columns]
inline Operator matmul(std::uint64_t rows, std::uint64_t inner, std::uint64_t columns) {
  return {.name = "matmul",
          .flops = 2 * rows * inner * columns,
          .output_bytes = rows * columns * kNumberBytes,
          .keeps_inputs = true};
}

inline Operator norm(Bytes bytes, Bytes statistics_bytes) {
  return {
      .name = "norm", .output_bytes = bytes, .mask_bytes = statistics_bytes, .keeps_inputs = true};
}

// Sigmoid, tanh, softmax: backward reads the result.
inline Operator activation(std::string_view name, Bytes bytes) {
  return {.name = name, .output_bytes = bytes, .keeps_output = true};
}

inline Operator gelu(Bytes bytes) {
  return {.name = "gelu", .output_bytes = bytes, .keeps_inputs = true};
}

inline Operator relu_in_place() {
  return {.name = "relu_", .keeps_output = true, .is_in_place = true};
}

inline Operator multiply(Bytes bytes) {
  return {.name = "mul", .output_bytes = bytes, .keeps_inputs = true};
}

inline Operator add(Bytes bytes) {
  return {.name = "add", .output_bytes = bytes, .passes_gradient = true};
}

inline Operator add_in_place() {
  return {.name = "add_", .passes_gradient = true, .is_in_place = true};
}

inline Operator dropout(Bytes bytes) {
  return {.name = "dropout",
          .output_bytes = bytes,
          .mask_bytes = bytes / kNumberBytes,
          .is_random = true};
}

// Of queries, keys and values, all of this size, without a matrix of all pairs in memory.
inline Operator attention(std::uint64_t tokens, std::uint64_t length, std::uint64_t width) {
  return {.name = "attention",
          .flops = 4 * tokens * length * width,
          .output_bytes = tokens * width * kNumberBytes,
          .mask_bytes = tokens * kNumberBytes,
          .keeps_inputs = true,
          .keeps_output = true};
}

inline Operator embedding(std::uint64_t tokens, std::uint64_t width) {
  return {.name = "embedding", .output_bytes = tokens * width * kNumberBytes, .keeps_inputs = true};
}

// Log-softmax and likelihood in one: a number, and what backward needs.
inline Operator cross_entropy(Bytes logits_bytes) {
  return {.name = "cross_entropy", .output_bytes = kNumberBytes, .mask_bytes = logits_bytes};
}

inline Operator copy(Bytes bytes) { return {.name = "copy", .output_bytes = bytes}; }

}  // namespace coop::sim
