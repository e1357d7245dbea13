#pragma once

// Operators that do not run now, but whenever the CUDA graph is launched that they become a part of.
//
// Note [Graphs]
//
// A graph keeps the addresses that its operators have used, reads and writes there whenever it is launched, and
// nobody tells us when that is. So:
//   - The memory that is asked for while it is captured is PyTorch's, not the pool's (cuda_allocator.cpp), and counts
//     in the budget when the capture has ended (Session::count_outside).
//   - What it uses of ours stays in its place until it dies. All that it uses, reads or writes, may change at any
//     time from now on: nothing is made again from it.
//   - Of a graph from before the budget nobody knows what it uses, but it lies outside the pool: nothing is made again
//     from what lies there once such a graph has been launched (_graphs.py, Session::distrust_foreign).
//   - Nothing is made again for it: what runs meanwhile on its stream would become a part of it. What is evicted when an
//     operator of the graph wants it is an error.
// The engine's own work (contents that others were made from are copied before they may be overwritten) happens at home,
// which must be another stream.

#include <span>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace coop::plugin {

class Session;

// Whether what the calling thread enqueues becomes a part of a graph.
[[nodiscard]] bool is_captured(Session& session);

// Of all the sessions that it concerns.
void run_captured(std::span<Session* const> sessions, const c10::OperatorHandle& op,
                  c10::DispatchKeySet below, torch::jit::Stack& stack);

}  // namespace coop::plugin
