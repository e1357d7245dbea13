#include "plugin/without_python.hpp"

#include <dlfcn.h>

namespace coop::plugin {
namespace {

struct Python {
  int (*has_lock)() = nullptr;
  void* (*give_up)() = nullptr;
  void (*take_back)(void*) = nullptr;
};

template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));  // NOLINT: that is what it is
}

const Python& python() {
  static const Python kPython = [] {
    Python found;
    find(found.has_lock, "PyGILState_Check");
    find(found.give_up, "PyEval_SaveThread");
    find(found.take_back, "PyEval_RestoreThread");
    const bool is_there = found.give_up != nullptr && found.take_back != nullptr;
    if (!is_there) found.has_lock = nullptr;
    return found;
  }();
  return kPython;
}

}  // namespace

WithoutPython::WithoutPython() {
  if (python().has_lock != nullptr && python().has_lock() == 1) state_ = python().give_up();
}

WithoutPython::~WithoutPython() noexcept(false) {
  if (state_ != nullptr) python().take_back(state_);
}

}  // namespace coop::plugin
