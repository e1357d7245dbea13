#pragma once

// Where in PyTorch's dispatcher we stand, and on which threads.
//
//     autograd, autocast, ADInplaceOrView        what the program sees
//     Fake                          <- we: every operator that a backend is going to run
//     Python (up to 2.12; later ones have it above)
//     CustomRNGKeyId                <- we again, up to 2.12: what Python code calls for an operator
//     backends
//
// While Python code (a mode, a tensor subclass) handles an operator, PyTorch switches off every key above
// Python, ours too. What that code calls is seen below.

#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace coop::plugin {

// PyTorch registers nothing here (2.11 to 2.15); prove_interception() finds out if that changes.
inline constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

inline constexpr c10::DispatchKey kKeyBelowPython = c10::DispatchKey::CustomRNGKeyId;
inline constexpr bool kIsPythonBelowUs = c10::DispatchKey::Python < kKey;

inline constexpr c10::DispatchKeySet kOurKeys =
    kIsPythonBelowUs ? c10::DispatchKeySet({kKey, kKeyBelowPython}) : c10::DispatchKeySet(kKey);

// The key is the scope: a thread that has it is inside, and autograd's workers inherit it. Inside an
// operator it is excluded as well, so that the operator's own calls are not seen a second time; that
// does not take the thread out of the scope.
inline bool is_thread_in_scope() {
  return c10::impl::tls_local_dispatch_key_set().included_.has(kKey);
}

inline void put_thread_in_scope(bool is_in_scope) {
  c10::impl::tls_set_dispatch_key_included(kKey, is_in_scope);
  if (kIsPythonBelowUs) c10::impl::tls_set_dispatch_key_included(kKeyBelowPython, is_in_scope);
}

inline c10::DispatchKeySet keys_below(c10::DispatchKeySet keys, c10::DispatchKey ours) {
  const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, ours);
  return below - kOurKeys;  // it has been seen
}

// A functorch transform handles the operator after us: what it does with the arguments is out of our
// sight.
inline bool is_handled_out_of_sight(c10::DispatchKeySet below) {
  const auto included = c10::impl::tls_local_dispatch_key_set().included_;
  return below.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode) ||
         included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
         included.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
}

}  // namespace coop::plugin
