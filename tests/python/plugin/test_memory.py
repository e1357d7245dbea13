"""What happens at the edges: no room, raw addresses, views, the end of the scope."""

import gc

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import numpy as np  # noqa: E402
from coop import _plugin  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20


def stress(nbytes=16 * MIB):
    return _plugin.budget(nbytes, stress=True, small_limit=0)


def is_resident(tensor):
    return torch.ops.coop.is_resident(tensor)


def test_out_of_memory_is_pytorchs_own_and_the_program_goes_on():
    with _plugin.budget(13 * MIB):  # three tensors, and what is small
        x = torch.arange(MIB, dtype=torch.float32)
        kept = x + 1
        with pytest.raises(torch.OutOfMemoryError, match="coop"):
            torch.zeros(4 * MIB)
        with pytest.raises(torch.OutOfMemoryError):
            x.double() + x  # there is room for the first, but not for the second
        assert kept.sum().item() == x.sum().item() + MIB
        y = x * 2
        assert torch.equal(y - x, x)  # in kept's place, which is made again when it is needed
        assert torch.equal(kept, x + 1)
        torch.ops.coop.validate()
        assert _plugin.stats()["peak_held_bytes"] <= 13 * MIB
    assert torch.equal(kept, torch.arange(MIB, dtype=torch.float32) + 1)


def test_a_training_step_that_does_not_fit_can_be_tried_again_smaller():
    def step(model, batch):
        torch.manual_seed(3)
        model.zero_grad()
        model(torch.randn(batch, 256)).square().mean().backward()

    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 4))
    step(model, 64)
    wanted = [p.grad.clone() for p in model.parameters()]
    with _plugin.budget(2 * MIB, small_limit=4 * KIB):
        with pytest.raises(torch.OutOfMemoryError):
            step(model, 4096)
        step(model, 64)
    assert all(torch.equal(p.grad, w) for p, w in zip(model.parameters(), wanted, strict=True))


def test_numpy_brings_the_contents_back_and_keeps_them():
    with stress():
        x = torch.arange(1000.0)
        y = x * 2
        assert not is_resident(y)
        array = y.numpy()
        assert np.array_equal(array, np.arange(1000.0, dtype=np.float32) * 2)
        array[0] = 5  # seen by PyTorch, as ever
        assert (y + 1)[0].item() == 6
        z = y * 3  # can change at any time: not made again from it
        array[0] = 7
        assert z[0].item() == 15
        assert is_resident(y)
        pointer = y.data_ptr()
    # The address outlives the scope.
    assert y.data_ptr() == pointer
    assert array[0] == 7
    assert y[0].item() == 7
    del y, z
    gc.collect()
    assert array[1] == 2


def test_what_was_made_before_an_address_was_taken_keeps_its_numbers():
    older = torch.zeros(5000)
    with stress():
        for x in (older, torch.zeros(5000) + 0, torch.arange(5000.0)):
            y = x * 2
            wanted = x[0].item() * 2
            array = x.numpy()
            array[0] = 77  # no operator says so
            assert y[0].item() == wanted
            z = x * 2
            array[0] = 5
            assert z[0].item() == 154


def test_statistics_that_no_schema_names_are_updated_once():
    x = torch.arange(64.0).reshape(8, 8)

    def means():
        mean, variance = torch.zeros(8), torch.ones(8)
        made, _ = torch.batch_norm_update_stats(x, mean, variance, 0.1)
        return mean, made + 0

    wanted, _ = means()
    with stress():
        mean, made = means()
        made.tolist()  # brought back
        assert torch.equal(mean, wanted)


def test_what_was_made_before_a_write_that_no_schema_names():
    x = torch.arange(64.0).reshape(8, 8)
    with stress():
        mean, variance = torch.zeros(8), torch.ones(8)
        doubled = mean * 2
        torch.batch_norm_update_stats(x, mean, variance, 0.1)
        assert not doubled.any()
        assert mean.any()


def test_an_address_is_never_null():
    with stress():
        y = torch.arange(1000.0) * 2
        with pytest.raises(RuntimeError, match="coop has evicted"):
            torch._C.TensorBase.data_ptr(y)  # not asked first
        assert y.tolist()[:3] == [0, 2, 4]


def test_views_need_no_contents():
    with stress():
        y = torch.arange(1024.0) * 2
        replays = _plugin.stats()["replays"]
        view = y.view(32, 32).t()[3:, 1].detach()
        assert not is_resident(view)
        assert _plugin.stats()["replays"] == replays
        assert view[0].item() == (32 + 3) * 2


def test_in_place_on_what_others_were_made_from():
    with stress():
        x = torch.arange(1000.0)
        y = x * 2
        a = y + 1
        first = y[:10]
        y.relu_().add_(1)
        b = y * 2
        y[5:] += 3
        for _ in range(20):
            y.mul_(1.5).sub_(1)
        x.zero_()  # a Source: a and b come from what it was
        outcome = [a, b, y, first.clone()]
    x = torch.arange(1000.0)
    y = x * 2
    a = y + 1
    first = y[:10]
    y.relu_().add_(1)
    b = y * 2
    y[5:] += 3
    for _ in range(20):
        y.mul_(1.5).sub_(1)
    for mine, plain in zip(outcome, [a, b, y, first], strict=True):
        assert torch.equal(mine, plain)


def test_random_numbers_are_drawn_once():
    def draw(generator):
        noise = torch.empty(1000).normal_(generator=generator)
        mask = torch.nn.functional.dropout(noise, 0.5)
        chosen = torch.bernoulli(torch.full((1000,), 0.3), generator=generator)
        return [noise * 2, mask, chosen, torch.rand(7), torch.rand(7, generator=generator)]

    def run():
        torch.manual_seed(5)
        return draw(torch.Generator().manual_seed(9))

    plain = run()
    with stress():
        stressed = run()
        again = [t * 1 for t in stressed]
        assert _plugin.stats()["replays"] > 5
    for a, b, c in zip(plain, stressed, again, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)


def test_a_replay_has_the_ambience_of_the_first_run():
    with stress():
        x = torch.arange(1000)
        y = x / 3  # of the default type
        with torch.no_grad():
            torch.set_default_dtype(torch.float64)
            try:
                assert y.sum().dtype == torch.float32
                assert torch.equal(y, torch.arange(1000) / torch.tensor(3, dtype=torch.float32))
            finally:
                torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("flags", [torch.backends, torch.backends.mkldnn.matmul])
def test_a_replay_has_the_precision_of_the_first_run(flags):
    x = torch.randn(64, 64)
    exact = x @ x
    before = flags.fp32_precision
    try:
        flags.fp32_precision = "bf16"
        rough = x @ x  # on some processors the same
        with stress():
            y = x @ x
            flags.fp32_precision = "ieee"
            assert torch.equal(y, rough)
            z = x @ x
            assert flags.fp32_precision == "ieee"
            flags.fp32_precision = "bf16"
            assert torch.equal(z, exact)
            assert torch.equal(x @ x, rough)
    finally:
        flags.fp32_precision = before


def test_a_number_of_the_programs_stays_one():
    with stress():
        y = torch.arange(1000) * 2.5  # a tensor of one double would make doubles of it
        z = torch.arange(1000, dtype=torch.int16) * 3
        assert not is_resident(y)
        assert y.sum().item() == 2.5 * 999 * 500
        assert y.dtype == torch.float32
        assert z.max().item() == 2997
        assert z.dtype == torch.int16


def test_inference_mode():
    x = torch.randn(8, 64)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64)).eval()
    with torch.inference_mode():
        plain = layer(x)
        with stress():
            assert torch.equal(layer(x), plain)
            assert _plugin.stats()["replays"] > 0


@pytest.mark.filterwarnings("ignore::coop.UnknownOperatorWarning")
def test_an_unknown_operator_gets_contents_and_leaves_sources():
    @torch.library.custom_op("coop_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * 2)

    with stress():
        x = torch.arange(1000.0) + 1
        y = twice(x) + 1
        assert torch.equal(y, (torch.arange(1000.0) + 1) * 2 + 1)


def test_storages_change_their_memory():
    with stress():
        x = torch.arange(1000.0) * 2
        y = torch.empty(0)
        y.set_(x)
        z = torch.ones(4) * 3
        z.resize_(800)
        z.fill_(2)
        w = torch.empty(0)
        torch.add(x, x, out=w)
        assert torch.equal(y, torch.arange(1000.0) * 2)
        assert torch.equal(z, torch.full((800,), 2.0))
        assert torch.equal(w, x * 2)
        del x, y, z, w
        torch.ops.coop.validate()
        stats = _plugin.stats()
    assert stats["storages"] == 0
    assert stats["calls"] == 0


def test_what_outlives_the_scope_is_ordinary_memory():
    with stress(1 * MIB):
        x = torch.arange(64.0 * KIB)  # a quarter of it each
        made = [x * i for i in range(6)]  # all together they would not fit
    for i, tensor in enumerate(made):
        assert torch.equal(tensor, torch.arange(64.0 * KIB) * i)


def test_a_budget_inside_a_budget_is_refused():
    with _plugin.budget(MIB):
        with pytest.raises(RuntimeError, match="inside"), _plugin.budget(MIB):
            pass
        assert torch.ones(3).sum().item() == 3
    with pytest.raises(ValueError, match="positive"), _plugin.budget(0):
        pass
