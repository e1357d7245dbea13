"""Why what operators made is never evicted: counted in bytes, by reason."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402

MIB = 1 << 20
SIZE = 4 * 1000


def reasons(run, small_limit=0):
    """Bytes of one tensor of a thousand floats each, by reason."""
    array = torch.ones(1000).numpy()
    with _plugin.budget(16 * MIB, stress=True, small_limit=small_limit):
        kept = run(array)
        made = torch.ops.coop.made_bytes()
        evicted = _plugin.stats()["evicted_once_bytes"]
    assert kept is not None
    assert evicted == made.pop("none")
    return {reason: count / SIZE for reason, count in made.items() if count} | {
        "evicted": evicted / SIZE
    }


def changed(tensor):
    tensor.add_(1)
    return tensor


CASES = {
    "evicted": (lambda _: torch.ones(1000) + 1, {"factory": 1, "evicted": 1}),
    "in place": (lambda _: changed(torch.ones(1000) + 1), {"factory": 1, "evicted": 2}),
    "written source": (lambda _: changed(torch.ones(1000)), {"factory": 1, "written source": 1}),
    "out=": (
        lambda _: torch.add(torch.ones(1000), 1, out=torch.zeros(1000)),
        {"factory": 2, "out=": 1},
    ),
    "foreign memory": (lambda array: torch.from_numpy(array) + 1, {"foreign memory": 1}),
    "dynamic shape": (
        lambda _: torch.masked_select(torch.ones(1000), torch.ones(4000, dtype=torch.bool)[:1000]),
        {"factory": 2, "dynamic shape": 1},
    ),
}


@pytest.mark.parametrize(("run", "wanted"), CASES.values(), ids=CASES.keys())
def test_bytes_by_reason(run, wanted):
    assert reasons(run) == {"evicted": 0} | wanted


def test_small_ones_are_counted_as_such():
    run = CASES["evicted"][0]
    assert reasons(run, small_limit=SIZE) == {"factory": 1, "small": 1, "evicted": 0}


def test_a_gradient_that_is_kept():
    def run(_):
        x = torch.ones(1000, requires_grad=True)
        (x * 2).sum().backward()
        x.grad.add_(1)
        return x

    assert reasons(run)["written source"] == 1
