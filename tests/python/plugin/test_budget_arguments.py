"""What is wrong with a budget is said before anything begins, with what is right."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin, _self_test  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(
    ("size", "nbytes"),
    [
        ("8GiB", 8 * GIB),
        ("8GB", 8 * 10**9),
        ("512MiB", 512 * MIB),
        ("1.5GiB", 3 * GIB // 2),
        ("4096", 4096),
        (4096, 4096),
    ],
)
def test_sizes(size, nbytes):
    assert coop.budget(size).bytes == nbytes


def test_a_share_of_the_memory_there_is():
    whole, half = coop.budget("100%").bytes, coop.budget("50%").bytes
    assert whole - 1 <= 2 * half <= whole
    assert whole > 100 * MIB
    assert coop.budget("50 %").bytes == half


@pytest.mark.parametrize(
    ("size", "error", "says"),
    [
        ("8 GiBs", ValueError, "unknown unit 'GiBs' .*8GiB, 512MB"),
        ("-8GiB", ValueError, "begin with a digit.* 8GiB, 512MB"),
        ("", ValueError, "begin with a digit"),
        ("nan", ValueError, "begin with a digit"),
        ("0", ValueError, "0 bytes.* 8GiB, 50%"),
        ("0%", ValueError, "above 0 and up to 100"),
        ("101%", ValueError, "above 0 and up to 100"),
        ("nan%", ValueError, "above 0 and up to 100"),
        ("half%", ValueError, "above 0 and up to 100"),
        ("50  %", ValueError, "above 0 and up to 100"),
        ("\u0661GiB", ValueError, "begin with a digit.* 8GiB, 512MB"),  # Arabic
        ("\u0665\u0660%", ValueError, "above 0 and up to 100"),
        ("2000TiB", ValueError, "must be less than 1 TiB"),
        ("1TiB", ValueError, "must be less than 1 TiB, at most 1099511627264 bytes"),
        (-1, ValueError, "positive number of bytes, not -1"),
        (0, ValueError, "positive number of bytes, not 0"),
        (True, TypeError, "whole number of bytes or a text like '8GiB'"),
        (float("nan"), TypeError, "whole number of bytes or a text like '8GiB'"),
        (1.5e9, TypeError, "whole number of bytes or a text like '8GiB'"),
        (None, TypeError, "whole number of bytes or a text like '8GiB'"),
    ],
)
def test_sizes_that_are_none(size, error, says):
    with pytest.raises(error, match=says):
        coop.budget(size)


def test_a_pool_has_a_least_size():
    with pytest.raises(ValueError, match="512 bytes"), coop.budget(100):
        pass


def test_where_there_is_no_memory_it_is_said_how_much_there_is():
    coop.budget("8MiB", device="cpu").__enter__().__exit__(None, None, None)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    says = r"budget of 8 GiB: [\d.]+ .iB are free on cpu now.* smaller --budget .*"
    try:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + GIB, before[1]))
        with pytest.raises(coop.OutOfMemory, match=says) as caught:
            coop.budget("8GiB", device="cpu").__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert str(caught.value).endswith("(DefaultCPUAllocator: can't allocate memory.)")
    assert torch.ops.coop.pools() == 0


def test_an_unknown_policy_lists_those_there_are():
    with pytest.raises(ValueError, match=r"no policy 'best'; there are coop, .*dtr, .*lru"):
        coop.budget("1GiB", policy="best")


@pytest.mark.parametrize(
    ("device", "says"),
    [
        ("cuda", "sees no GPU here"),
        (torch.device("cuda", 0), "sees no GPU here"),
        ("gpu7", "no device 'gpu7'; there are 'cpu', 'cuda'"),
        (7.5, "no device 7.5; there are 'cpu', 'cuda'"),
    ],
)
def test_devices_that_are_not_there(device, says):
    with pytest.raises(ValueError, match=says):
        coop.budget("1GiB", device=device)


@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")])
def test_the_cpu_is_a_device(device):
    with coop.budget("8MiB", device=device):
        assert torch.ops.coop.is_thread_in_scope()
    assert not torch.ops.coop.is_thread_in_scope()


def test_what_runs_later_cannot_be_decorated():
    def batches():
        yield torch.ones(3)

    async def train():
        pass

    for function in (batches, train, "train"):
        with pytest.raises(TypeError, match="inside it"):
            coop.budget("8MiB")(function)


@pytest.mark.parametrize("version", ["2.10.2", "2.16.0", "3.0.0+cpu"])
def test_other_versions_of_pytorch_are_refused(version):
    says = re.escape(f"2.11 to 2.15, and this is {version}")
    with pytest.raises(RuntimeError, match=says):
        _plugin.check_version(version)


@pytest.mark.parametrize("version", ["2.11.0", "2.13.1+cu130", "2.15.0a0+git123"])
def test_these_versions_are_not(version):
    _plugin.check_version(version)


@pytest.mark.parametrize("case", _self_test.CASES)
def test_operators_are_seen_once_in(case):
    function, wanted = _self_test.CASES[case]
    _plugin.start()
    seen = _self_test.seen_in(function)
    assert {op: seen.count(op) for op in wanted} == wanted
    assert not torch.ops.coop.is_thread_in_scope()


@pytest.mark.parametrize("times", [0, 2])
def test_what_does_not_see_every_operator_once_does_not_start(monkeypatch, times):
    function, _ = _self_test.CASES["no_grad"]
    monkeypatch.setitem(_self_test.CASES, "no_grad", (function, {"aten::erf": times}))
    _plugin.start.cache_clear()
    try:
        with pytest.raises(RuntimeError, match=f"no_grad: aten::erf 1 times instead of {times}"):
            coop.budget("8MiB").__enter__()
    finally:
        _plugin.start.cache_clear()
    assert not torch.ops.coop.is_thread_in_scope()


IMPORT_CHANGES_NOTHING = """
import sys
import coop
assert "torch" not in sys.modules
assert dir(coop)
assert "torch" not in sys.modules
import torch
before = str(torch._C._dispatch_tls_local_include_set()), torch._C._cuda_isInBadFork
coop.OutOfMemory is torch.OutOfMemoryError or sys.exit("another error")
assert "coop" not in {name.split("::")[0] for name in torch._C._dispatch_get_all_op_names()}
assert "coop_plugin" not in open("/proc/self/maps").read()
assert torch.zeros(3).untyped_storage().resizable()
coop.budget("1MiB")
assert "coop_plugin" in open("/proc/self/maps").read()
assert before[0] == str(torch._C._dispatch_tls_local_include_set())
"""


def test_importing_changes_nothing():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_CHANGES_NOTHING],
        env={"PYTHONPATH": str(ROOT / "python"), "COOP_PLUGIN": _plugin.library_path()},
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_budget_for_several_devices():
    both = coop.budget({"cpu": "32MiB"})
    assert (both.device, both.bytes) == (torch.device("cpu"), 32 << 20)
    with both:
        assert coop.stats("cpu").budget_bytes == 32 << 20
    with pytest.raises(ValueError, match="no device"):
        coop.budget({})
    with pytest.raises(ValueError, match="named twice"):
        coop.budget({"cpu": "32MiB", torch.device("cpu"): "16MiB"})
    with pytest.raises(ValueError, match="there is none for 'meta'"):
        coop.budget({"cpu": "32MiB", "meta": "16MiB"})
    with pytest.raises(TypeError, match="leave out device="):
        coop.budget({"cpu": "32MiB"}, device="cpu")
    with pytest.raises(ValueError, match="positive"):
        coop.budget({"cpu": 0})
