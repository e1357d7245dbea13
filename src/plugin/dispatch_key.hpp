#pragma once

// Where in PyTorch's dispatcher we stand, and on which threads.
//
//     autograd, autocast, ADInplaceOrView        what the program sees
//     Fake                          <- we: every operator that a backend is going to run
//     Python (up to 2.12; later ones have it above), backends

#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace coop::plugin {

// PyTorch registers nothing here (2.11 to 2.15); prove_interception() finds out if that changes.
inline constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

// The key is the scope: a thread that has it is inside, and autograd's workers inherit it. Inside an
// operator it is excluded as well, so that the operator's own calls are not seen a second time; that
// does not take the thread out of the scope.
inline bool is_thread_in_scope() {
  return c10::impl::tls_local_dispatch_key_set().included_.has(kKey);
}

inline c10::DispatchKeySet keys_below(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
}

// Python code (a mode, a tensor subclass) or a functorch transform handles the operator after us: what
// it does with the arguments is out of our sight.
inline bool is_handled_out_of_sight(c10::DispatchKeySet below) {
  const auto included = c10::impl::tls_local_dispatch_key_set().included_;
  return below.has(c10::DispatchKey::Python) ||
         below.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode) ||
         included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
         included.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
}

}  // namespace coop::plugin
