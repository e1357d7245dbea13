"""Ways to a tensor's contents that no operator shows: each finds them, though all was evicted."""

import copy
import ctypes
import io
import pickle

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
np = pytest.importorskip("numpy", reason="numpy is not installed: make setup")

from coop import _plugin  # noqa: E402

COUNT = 1000


def make():
    return torch.arange(float(COUNT)) + 1


def stress():
    return _plugin.budget(16 << 20, stress=True, small_limit=0)


def at_address(address):
    floats = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
    return torch.tensor([floats[i] for i in range(COUNT)])


def of_bytes(data):
    return torch.frombuffer(bytearray(data), dtype=torch.float32)


def of_array(array):
    return torch.from_numpy(array.copy())


def printed(x):
    torch.set_printoptions(threshold=COUNT + 1)
    try:
        return torch.tensor(eval(repr(x).removeprefix("tensor")))
    finally:
        torch.set_printoptions(profile="default")


def saved(x, **options):
    file = io.BytesIO()
    torch.save(x, file, **options)
    file.seek(0)
    return torch.load(file)


def saved_in_a_module(x):
    module = torch.nn.Module()
    module.register_buffer("x", x)
    return saved(module.state_dict())["x"]


def shared(x):
    assert x.share_memory_().is_shared()
    return x


def not_shared(x):
    assert not x.is_shared()
    assert not x.untyped_storage().is_shared()
    return x


def set_to_the_storage(x):
    return torch.empty(0).set_(x.untyped_storage().clone(), 0, (COUNT,))


WAYS = {
    "numpy": lambda x: of_array(x.numpy()),
    "numpy by force": lambda x: of_array(x.requires_grad_().numpy(force=True)),
    "np.asarray": lambda x: of_array(np.asarray(x)),
    "np.array": lambda x: torch.from_numpy(np.array(x)),
    "np.from_dlpack": lambda x: of_array(np.from_dlpack(x)),
    "__array__": lambda x: of_array(x.__array__()),
    "tolist": lambda x: torch.tensor(x.tolist()),
    "a list of tensors": lambda x: torch.tensor(list(x)),
    "a list of lists of tensors": lambda x: torch.tensor([list(x[:500]), list(x[500:])]).view(-1),
    "print": printed,
    "format": lambda x: torch.tensor([float(f"{x[i]:.3f}") for i in range(COUNT)]),
    "from_dlpack": lambda x: torch.from_dlpack(x).clone(),
    "to_dlpack": lambda x: torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)).clone(),
    "data_ptr": lambda x: at_address(x.data_ptr()),
    "data_ptr of a storage": lambda x: at_address(x.untyped_storage().data_ptr()),
    "bytes of a storage": lambda x: of_bytes(x.untyped_storage().tolist()),
    "a copy of the storage": set_to_the_storage,
    "save and load": saved,
    "the old format": lambda x: saved(x, _use_new_zipfile_serialization=False),
    "state_dict": saved_in_a_module,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "deepcopy of a parameter": lambda x: copy.deepcopy(torch.nn.Parameter(x)).detach(),
    "share_memory_": shared,
    "is_shared": not_shared,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_the_contents_are_there(way):
    wanted = make()
    with stress():
        x = make()
        assert not torch.ops.coop.is_resident(x)
        found = way(x)
        assert torch.equal(found, wanted)
        assert torch.equal(x.detach(), wanted)
        torch.ops.coop.validate()
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("is_before", [False, True])
def test_a_profiler_that_records_shapes(is_before, capfd):
    def profile():
        return torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
        )

    def work(x):
        y = (x.view(10, 100) @ torch.ones(100, 3)).requires_grad_()
        (torch.stack([y, y]).tanh() * 2).sum().backward()
        return y.grad

    wanted = work(make())
    if is_before:
        with profile() as found, stress():
            gradient = work(make())
    else:
        with stress(), profile() as found:
            gradient = work(make())
    assert torch.equal(gradient, wanted)
    shapes = {event.name: event.input_shapes for event in found.events()}
    assert shapes["aten::mm"] == [[10, 100], [100, 3]]
    assert shapes["aten::tanh"] == [[2, 10, 3]]
    assert "RecordFunction" not in capfd.readouterr().err  # where its errors go


def steps_of(function):
    x = (torch.arange(300.0) / 100).requires_grad_()
    results = []
    for _ in range(2):
        loss = function(x * 2, torch.ones(300) * 3).sum()
        (gradient,) = torch.autograd.grad(loss, x)
        results.append((loss.detach(), gradient))
    return [it for pair in results for it in pair]


def scripted_body(x, y):
    for i in range(3):
        x = x.tanh() * y + i
        x[2:5] = 0.5
    return x


@pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("is_traced", [False, True])
def test_torchscript(is_traced):
    if is_traced:
        function = torch.jit.trace(scripted_body, (torch.ones(300), torch.ones(300)))
    else:
        function = torch.jit.script(scripted_body)
    for _ in range(3):
        wanted = steps_of(function)  # the first runs are of other code than the later ones
    with stress():
        found = steps_of(function)
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
