#include "plugin/raw_readers.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <torch/library.h>

#include "plugin/contents.hpp"
#include "plugin/recorded_call.hpp"
#include "plugin/session.hpp"
#include "plugin/tensor_parts.hpp"
#include "plugin/torch_version.hpp"

namespace coop::plugin {
namespace {

constexpr std::uint32_t argument(std::size_t number) { return 1U << number; }

constexpr std::array<RawReader, 17> kRawReaders = {{
    {"aten::max_pool1d", "", argument(0)},  // without gradients
    {"aten::tensor_split", "tensor_indices_or_sections", argument(1)},
    {"aten::lstm", "data", argument(1)},  // the batch sizes of a packed sequence
    {"aten::gru", "data", argument(1)},
    {"aten::rnn_tanh", "data", argument(1)},
    {"aten::rnn_relu", "data", argument(1)},
    {"aten::_pad_packed_sequence", "", argument(1)},
    {"aten::_pack_padded_sequence_backward", "", argument(2)},
    {"aten::quantile", "", argument(0), kQuantilesArePicked},
    {"aten::quantile", "out", argument(0), kQuantilesArePicked},
    {"aten::quantile", "scalar", argument(0), kQuantilesArePicked},
    {"aten::quantile", "scalar_out", argument(0), kQuantilesArePicked},
    {"aten::nanquantile", "", argument(0), kQuantilesArePicked},
    {"aten::nanquantile", "out", argument(0), kQuantilesArePicked},
    {"aten::nanquantile", "scalar", argument(0), kQuantilesArePicked},
    {"aten::nanquantile", "scalar_out", argument(0), kQuantilesArePicked},
    {"aten::ctc_loss", "Tensor", argument(2) | argument(3)},  // lengths
}};

thread_local bool copies_are_read = false;

class ReadingCopies {
 public:
  explicit ReadingCopies(bool reads) : before_(copies_are_read) { copies_are_read = reads; }
  ReadingCopies(const ReadingCopies&) = delete;
  ReadingCopies& operator=(const ReadingCopies&) = delete;
  ~ReadingCopies() { copies_are_read = before_; }

 private:
  bool before_;
};

// Autograd's place: whatever the thread is in, PyTorch takes the operator apart here.
void intercept_raw_reader(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/,
                          torch::jit::Stack* stack) {
  const c10::OperatorName& name = op.operator_name();
  const auto* const reader =
      std::find_if(kRawReaders.begin(), kRawReaders.end(), [&](const RawReader& it) {
        return name.name == it.name && name.overload_name == it.overload;
      });
  run_with_contents(*reader, op, stack, c10::DispatchKeySet(c10::DispatchKey::CPU));
}

}  // namespace

std::span<const RawReader> raw_readers() { return kRawReaders; }

bool are_copies_read() { return copies_are_read; }

void run_with_contents(const RawReader& reader, const c10::OperatorHandle& op,
                       torch::jit::Stack* stack, c10::DispatchKeySet keys) {
  const CurrentSession session;
  if (!session) return op.redispatchBoxed(keys, stack);
  Contents contents;
  with_torch_errors([&] {
    const auto arguments =
        std::span<const c10::IValue>(*stack).last(op.schema().arguments().size());
    for_each_tensor(arguments, [&](const at::Tensor& tensor, std::size_t i, std::int64_t) {
      const bool is_read = (reader.arguments & argument(i)) != 0;
      if (is_read && !is_strange(tensor)) contents.add(tensor);
    });
    contents.bring_back();
  });
  const ReadingCopies reading(reader.reads_copies);
  op.redispatchBoxed(keys, stack);
}

void intercept_raw_readers() {
  static auto& library = *new torch::Library(torch::Library::IMPL, "aten",
                                             c10::DispatchKey::AutogradCPU, __FILE__, __LINE__);
  for (const RawReader& it : kRawReaders) {
    const c10::OperatorName name(it.name, it.overload);
    if (!c10::Dispatcher::singleton().findSchema(name)) continue;  // not in this version
    library.impl(toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&intercept_raw_reader>());
  }
}

}  // namespace coop::plugin
