#pragma once

// Operators of extensions that the program has declared: functional but for what their schema says that
// they write, and the same every time. Without that they are unknown, and what they make is kept.

#include <cstdint>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>

#include "plugin/operator_facts.hpp"

namespace coop::plugin {

// All overloads of "space::name", or the one of "space::name.overload". Throws c10::ValueError if there is
// no such operator. Random: it draws numbers from the default generator, or from one that it is given.
void register_operator(const std::string& name, bool is_random);

// Null if it is not registered. Good for as long as the process lives.
const OperatorFacts* registered_facts_of(const c10::OperatorHandle& op);

}  // namespace coop::plugin
