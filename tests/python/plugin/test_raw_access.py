"""Contents that change, or are read, without an operator: through addresses and storages."""

import copy
import ctypes
import io

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402

MIB = 1 << 20


def stress(nbytes=16 * MIB):
    return _plugin.budget(nbytes, stress=True, small_limit=0)


def test_an_address_taken_before_the_scope():
    x = torch.zeros(5000)
    array = x.numpy()
    with stress():
        y = x * 2
        array[0] = 77
        assert y[0].item() == 0


def test_a_storage_kept_from_before_the_scope_is_given_other_memory():
    x = torch.ones(5000)
    storage = x.untyped_storage()
    nbytes = storage.nbytes()
    with stress():
        y = x * 2
        storage.resize_(0)
        storage.resize_(nbytes)
        x.copy_(torch.full((5000,), 9.0))
        z = x * 2
        assert y[0].item() == 2
        x.share_memory_()
        assert z[0].item() == 18
        torch.ops.coop.validate()


def test_written_element_by_element_in_python():
    with stress():
        x = torch.zeros(300) + 0
        y = x * 2
        x.apply_(lambda it: it + 1)
        assert not y.any()
        assert x.sum().item() == 300


def test_read_element_by_element_in_python():
    with stress():
        x, y, z = (torch.full((300,), it) + 0 for it in (1.0, 2.0, 3.0))
        w = x * 10
        x.map_(y, lambda a, b: a + b)
        assert x.eq(3).all()
        x.map2_(y, z, lambda a, b, c: a + b * c)
        assert x.eq(9).all()
        assert w.eq(10).all()


def test_compared_by_address():
    with stress():
        x = torch.ones(300) * 2
        y = x * 1
        assert not torch._C._is_alias_of(x, y)
        assert torch._C._is_alias_of(x, x[2:])


def test_what_dlpack_handed_out_outlives_the_scope():
    with _plugin.budget(16 * MIB):
        x = torch.arange(100000.0)
        y = x + 1
        shared = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
        shared_too = torch.from_dlpack(y)
    assert shared[99999].item() == 99999
    assert shared_too[99999].item() == 100000
    shared[0] = 5
    assert x[0].item() == 5


def packed_lstm(x):
    torch.manual_seed(1)
    lstm = torch.nn.LSTM(4, 3)
    lengths = torch.tensor([5, 3, 2]) + 0
    packed = torch.nn.utils.rnn.pack_padded_sequence(x.view(5, 3, 4), lengths)
    return torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0])[0]


def ctc_loss(x):
    lengths = torch.tensor([5, 5, 5]) + 0
    targets = torch.ones(3, 2, dtype=torch.long)
    log_probs = x.view(5, 3, 4).log_softmax(2)
    return torch.nn.functional.ctc_loss(log_probs, targets, lengths, lengths - 3)


def assigned(x, index):
    old = x * 3
    x = x.clone()
    y = x * 2
    x[index] = x[7] * 2
    x[index] = old[9]  # a view of something larger
    return x + y


READ_ABOVE_US = {
    "max_pool1d": lambda x: torch.nn.functional.max_pool1d(x.view(1, 1, -1), 2),
    "tensor_split": lambda x: x.tensor_split(torch.tensor([7, 20]) + 0)[1] + 1,
    "packed_lstm": packed_lstm,
    "ctc_loss": ctc_loss,
    "quantile": lambda x: x.quantile(torch.tensor([0.25, 0.5]) + 0.125),
    "nanquantile": lambda x: x.nanquantile(torch.tensor([0.25, 0.5]) + 0.125),
    "quantile of a column": lambda x: (x.view(30, 2) * 2).quantile(0.3, dim=0),
    "quantile of all columns": lambda x: (x.view(30, 2) * 2).t().quantile(0.3),
    "assigned to a mask": lambda x: assigned(x, x > 3),
    "assigned to indices": lambda x: assigned(x, torch.tensor([4, 2]) + 1),
    "assigned to an index": lambda x: assigned(x, torch.tensor(4) + 1),
}


@pytest.mark.parametrize("is_inference", [False, True])
@pytest.mark.parametrize("function", READ_ABOVE_US.values(), ids=READ_ABOVE_US.keys())
def test_operators_that_read_memory_before_we_see_them(function, is_inference):
    with torch.inference_mode(is_inference):
        wanted = function(torch.arange(60.0) + 1)
        with stress():
            x = torch.arange(60.0) + 1
            assert torch.equal(function(x), wanted)
            if not is_inference:
                grown = function(x.requires_grad_())
                assert torch.equal(grown, wanted)
                grown.sum().backward()


def test_a_factory_reads_what_is_no_template():
    torch.manual_seed(1)
    wanted = torch.randint_like(torch.zeros(100), torch.tensor(7))
    torch.manual_seed(1)
    with stress():
        high = torch.tensor(6) + 1
        assert torch.equal(torch.randint_like(torch.zeros(100), high), wanted)


def test_a_deep_copy_leaves_the_original_to_be_relied_on():
    """What is made from it is evicted and made again as before."""
    older = torch.arange(5000.0)
    with stress():
        x = torch.arange(5000.0) + 1
        first, half, second = copy.deepcopy([x, x[:2500], older])
        y = first + second
        first.zero_()
        x.add_(1)
        z, w = x * 2, older * 2
        for it in (y, z, w):
            assert not torch.ops.coop.is_resident(it)
        assert torch.equal(y, older + older + 1)
        assert torch.equal(z, (older + 2) * 2)
        assert not half.any()  # it shares its memory, as the originals do
        assert torch.equal(second, older)


def test_what_was_saved_can_be_relied_on():
    older = torch.arange(5000.0)
    with stress():
        x = torch.arange(5000.0) + 1
        file = io.BytesIO()
        torch.save({"x": x, "part": x[10:20], "older": older}, file)
        y, z = x * 2, older * 2
        for it in (y, z):
            assert not torch.ops.coop.is_resident(it)
        file.seek(0)
        loaded = torch.load(file)
        assert torch.equal(loaded["x"], x)
        assert torch.equal(loaded["part"], x[10:20])
        assert torch.equal(loaded["older"], older)
        assert torch.equal(y, (older + 1) * 2)
        array = x.numpy()  # whoever takes an address can still write there
        array[0] = 7
        assert y[0].item() == 2
        assert (x * 2)[0].item() == 14


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_a_scripted_module_is_saved(tmp_path):
    """By C++, which asks nobody."""
    with stress():
        linear = torch.nn.Linear(100, 100)
        linear.weight.data = torch.arange(10_000.0).view(100, 100) * 2
        scripted = torch.jit.script(linear)
        assert not torch.ops.coop.is_resident(linear.weight)
        file = io.BytesIO()
        torch.jit.save(scripted, file)
        scripted.save(tmp_path / "module.pt")
        file.seek(0)
        for it in (file, tmp_path / "module.pt"):
            assert torch.equal(torch.jit.load(it).weight, linear.weight)
        assert torch.equal(linear.weight, torch.arange(10_000.0).view(100, 100) * 2)
        assert not torch.ops.coop.is_resident(linear.weight)


def test_what_was_saved_by_safetensors_can_be_relied_on(tmp_path):
    """Which gets by addresses at what it writes down."""
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    older = torch.arange(5000.0)
    with stress():
        x = torch.arange(5000.0) + 1
        file = tmp_path / "saved.safetensors"
        safetensors.save_file({"x": x, "older": older}, file)
        saved = safetensors.save({"x": x})
        y, z = x * 2, older * 2
        for it in (y, z):
            assert not torch.ops.coop.is_resident(it)
        assert torch.equal(y, (older + 1) * 2)
    loaded = safetensors.load_file(file)
    assert torch.equal(loaded["x"], older + 1)
    assert torch.equal(loaded["older"], older)
    assert torch.equal(safetensors.load(saved)["x"], older + 1)


def test_an_address_taken_by_others_is_one_that_is_written():
    with stress():
        x = torch.arange(5000.0) + 1
        address = x.data_ptr()
        y = x * 2
        ctypes.c_float.from_address(address).value = 7
        assert y[0].item() == 2
        assert (x * 2)[0].item() == 14
