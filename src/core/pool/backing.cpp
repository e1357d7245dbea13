#include "core/pool/backing.hpp"

#include <new>

#include "core/pool/grain.hpp"

namespace coop {

std::byte* HostBacking::acquire(Bytes bytes) {
  return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kGrainBytes}));
}

void HostBacking::give_back(std::byte* memory, Bytes /*bytes*/) noexcept {
  ::operator delete (memory, std::align_val_t{kGrainBytes});
}

}  // namespace coop
