"""The library behind test_op_db.py sees what it is there to see."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from op_db.cases import Selection  # noqa: E402
from op_db.inputs import Recipe  # noqa: E402
from op_db.outcome import Outcome, differences  # noqa: E402
from op_db.workers import Task, Workers  # noqa: E402

NAN = float("nan")


def outcome(*things):
    made = Outcome()
    made.add("result", things)
    return made


def base(shape=(4, 4)):
    return torch.arange(16.0).reshape(shape)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (lambda: base(), lambda: base().index_fill(0, torch.tensor([2]), 0)),
        (lambda: base(), lambda: base().t()),
        (lambda: base(), lambda: base().t().contiguous().t()),  # other strides
        (lambda: base(), lambda: base().double()),
        (lambda: base(), lambda: base().requires_grad_()),
        (lambda: torch.zeros(3), lambda: -torch.zeros(3)),
        (lambda: base().to_sparse(), lambda: (base() + 1).to_sparse()),
        (lambda: 1.0, lambda: NAN),
        (lambda: 1, lambda: 1.0),
        (lambda: [base()], lambda: [base(), base()]),
    ],
)
def test_a_difference_is_seen(a, b):
    assert differences(outcome(a()), outcome(b()))
    assert not differences(outcome(a()), outcome(a()))
    assert not differences(outcome(b()), outcome(b()))


def test_shared_memory_is_seen():
    x = base()
    assert differences(outcome(x, x.view(16)), outcome(x, x.clone().view(16)))


def test_numbers_that_are_none_are_alike():
    x = torch.tensor([1.0, NAN])
    assert not differences(outcome(x, NAN), outcome(x.clone(), NAN))


def test_an_error_inside_is_a_difference():
    assert differences(outcome(base()), Outcome(error=RuntimeError("no")))


def test_arguments_are_made_anew_as_they_were():
    x = base()
    values = (x, [x.t()[1:3], {"a": x[:, ::2]}], x.to(torch.complex64).conj(), torch.tensor(3), 7)
    recipe = Recipe(*values)
    first, second = recipe.copy(), recipe.copy()
    assert not differences(outcome(*values), outcome(*first))
    first[0].zero_()
    assert not first[1][0].any()  # it shares memory, as before
    assert not differences(outcome(*values), outcome(*second))


def test_a_selection_is_drawn_by_its_seed():
    one = Selection(most=3, seed=1).numbers("add", "float32", 20)
    assert one == Selection(most=3, seed=1).numbers("add", "float32", 20)
    assert one != Selection(most=3, seed=2).numbers("add", "float32", 20)
    assert len(set(one)) == 3
    assert Selection(most=30).numbers("add", "float32", 20) == list(range(20))


def test_a_process_that_dies_is_reported_by_name():
    workers = Workers(count=1)
    tasks = [Task("no such operator", "float32"), Task("neg", "float32", "stress", Selection(1))]
    workers.submit(tasks)
    try:
        died, ran = map(workers.report, tasks)
    finally:
        workers.close()
    assert "no such operator float32: the process died" in died.differing[0]
    assert ran.cases > 0
    assert not ran.differing
