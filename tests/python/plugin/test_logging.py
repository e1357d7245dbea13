"""What is said through Python's `logging`, and to whom."""

import logging

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402


def compute():
    chain = [torch.ones(1 << 18)]  # 1 MiB each
    for _ in range(16):
        chain.append(chain[-1] * 0.5)
    return sum(it.sum() for it in chain)


def records(caplog, level):
    return [it.getMessage() for it in caplog.records if it.name == "coop" and it.levelno == level]


def test_a_budget_tells_when_it_begins_and_how_it_ended(caplog):
    caplog.set_level(logging.INFO, "coop")
    with coop.budget("8MiB"):
        compute()
    began, ended = records(caplog, logging.INFO)
    assert began == f"{coop.budget(8 << 20)!r} begins: 8.0 MiB"
    counted = coop.stats()
    assert counted.recomputations > 0
    assert ended.startswith("budget of 8.0 MiB ends: peak ")
    assert f" {counted.evictions} tensors evicted" in ended
    assert f" {counted.recomputations} operators recomputed in " in ended
    assert records(caplog, logging.DEBUG) == []


def test_there_is_more_for_those_who_ask(caplog):
    caplog.set_level(logging.DEBUG, "coop")
    with coop.budget("8MiB"):
        compute()
    counted = coop.stats().by_op[0]
    said = f"recomputed {counted.op}: {counted.times} times, "
    assert any(it.startswith(said) for it in records(caplog, logging.DEBUG))


def test_an_end_by_an_error_is_told(caplog):
    caplog.set_level(logging.INFO, "coop")
    with pytest.raises(ZeroDivisionError), coop.budget("8MiB"):
        raise ZeroDivisionError
    assert [it.split(":")[0] for it in records(caplog, logging.INFO)][1] == "budget of 8.0 MiB ends"


def test_a_budget_that_does_not_begin_is_not_told(caplog):
    caplog.set_level(logging.INFO, "coop")
    with coop.budget("8MiB"):
        caplog.clear()
        with pytest.raises(RuntimeError, match="inside a budget"):
            coop.budget("4MiB").__enter__()
        assert caplog.records == []


def test_a_recording_is_told(caplog, tmp_path):
    caplog.set_level(logging.INFO, "coop")
    with coop.budget("8MiB"):
        caplog.clear()
        with coop.record(tmp_path / "step.coop") as recording:
            compute()
        began, ended = records(caplog, logging.INFO)
    assert began == f"{recording!r} begins"
    assert ended.startswith(f"{recording!r} has ended: ")
