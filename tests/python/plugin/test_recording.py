"""What runs inside a budget is recorded; the simulator decides from that as the plugin did."""

import gc
import gzip
import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from torch.nn import functional  # noqa: E402
from training import Training, adam, deep_cnn, deep_mlp, sgd  # noqa: E402

MIB = 1 << 20
EVERYTHING = os.environ.get("COOP_TEST_SCALE") == "full"
# One of each kind; with COOP_TEST_SCALE=full all of them.
SOME = (
    "resnet",
    "unet",
    "transformer_with_dropout",
    "gru_written_out",
    "mixture_of_experts",
    "gan_with_gradient_penalty",
    "gradient_accumulation_and_clipping",
    "checkpoint_reentrant",
    "resized",
    "hooks_that_write",
    "adam_fused",
    "autocast_bfloat16",
    "subclass_of_operators",
    "evaluation_between_steps",
)


@pytest.fixture(autouse=True)
def nothing_left():
    """What lives in a pool of an earlier test would be there when a recording begins."""
    gc.collect()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def train(training: Training, recording: coop.record | None = None) -> list[float]:
    torch.manual_seed(17)
    model = training.model()
    optimizer = training.optimizer(model.parameters())
    losses = []
    for _ in range(training.steps):
        if recording:
            recording.step()
        inputs = torch.randn(training.shape)
        targets = torch.randint(0, 10, training.shape[:1])
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def decided_alike(coop_sim, path) -> dict:
    """What was decided; the simulator must agree."""
    done = coop_sim.run("check", path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = coop_sim.json("check", path)
    assert (found["status"], found["is_late"]) == ("same", False)
    return found


@pytest.mark.parametrize("policy", ["coop", "dtr", "dte", "lru", "random"])
@pytest.mark.parametrize(
    ("training", "nbytes"),
    [
        (Training(deep_mlp, (512, 64), adam, steps=6), int(4.6 * MIB)),
        (Training(deep_cnn, (16, 3, 16, 16), sgd, steps=6), 2 * MIB),
    ],
    ids=["deep_mlp", "deep_cnn"],
)
def test_the_simulator_decides_alike(coop_sim, tmp_path, training, nbytes, policy):
    path = tmp_path / "step.coop"
    plain = train(training)
    with _plugin.budget(nbytes, small_limit=4096, policy=policy):
        with coop.record(path, decisions=True) as recording:
            losses = train(training, recording)
        stats = _plugin.stats()
    assert losses == plain
    found = decided_alike(coop_sim, path)
    assert stats["evictions"] > 0 and stats["replays"] > 0
    assert found["evictions"] >= stats["evictions"]  # which does not count past versions
    assert found["recomputed_calls"] == stats["replays"]
    assert coop_sim.json("info", path)["steps"] == training.steps


def record_program(name: str, path, budget) -> dict[str, int]:
    torch.manual_seed(1)
    with budget:
        with coop.record(path, decisions=True) as recording:
            training = PROGRAMS[name].build()
            for _ in range(5):
                recording.step()
                training.step()
        stats = _plugin.stats()
    del training
    gc.collect()
    return stats


@pytest.mark.parametrize("name", PROGRAMS if EVERYTHING else SOME)
def test_whole_programs(coop_sim, tmp_path, name):
    """Whether or not they fit: what ran until then is recorded."""
    if reason := PROGRAMS[name].skip():
        pytest.skip(reason)
    path = tmp_path / "step.coop"
    peak = record_program(name, path, _plugin.budget(64 * MIB, small_limit=4096))["peak_held_bytes"]
    assert decided_alike(coop_sim, path)["evictions"] == 0
    try:
        stats = record_program(name, path, _plugin.budget(int(0.6 * peak), small_limit=4096))
        assert stats["replays"] > 0
    except torch.OutOfMemoryError:
        gc.collect()
    assert decided_alike(coop_sim, path)["evictions"] > 0


def test_planned_steps(coop_sim, tmp_path):
    """Steps that repeat are foretold: what the plan drops and keeps is the same, too."""
    path = tmp_path / "step.coop"
    planned = 0
    for mebibytes in (4.2, 4.0, 3.8):  # costs are measured: not every run has a plan
        with _plugin.budget(int(mebibytes * MIB), small_limit=4096):
            with coop.record(path, decisions=True) as recording:
                train(Training(deep_mlp, (512, 64), sgd, steps=12), recording)
            stats = _plugin.stats()
        assert decided_alike(coop_sim, path)["recomputed_calls"] == stats["replays"]
        planned += stats["planned_calls"]
    assert planned > 0


def test_stress(coop_sim, tmp_path):
    path = tmp_path / "step.coop"
    with _plugin.budget(64 * MIB, stress=True, small_limit=0):
        with coop.record(path, decisions=True) as recording:
            train(Training(deep_cnn, (8, 3, 16, 16), sgd, steps=2), recording)
        stats = _plugin.stats()
    found = decided_alike(coop_sim, path)
    assert found["recomputed_calls"] == stats["replays"] > 100


def test_going_on_after_the_end_of_memory(coop_sim, tmp_path):
    path = tmp_path / "step.coop"
    with coop.budget(2 * MIB), coop.record(path, decisions=True):
        base = torch.rand(400, 400)
        first = base * 2
        with pytest.raises(coop.OutOfMemory):
            torch.empty(1 << 50, dtype=torch.uint8)
        with pytest.raises(coop.OutOfMemory):
            base.repeat(4, 1)
        second = base + first
        third = second * second
        first.exp_()
    assert torch.equal(third, (base + base * 2) ** 2)
    assert torch.equal(first, (base * 2).exp())
    assert decided_alike(coop_sim, path)["recomputed_calls"] > 0
    assert path.read_text().count("\nfails\n") >= 2


def test_without_a_budget(coop_sim, tmp_path):
    path = tmp_path / "step.coop"
    model, batch = deep_mlp(), torch.randn(1024, 64)  # older: they lie outside
    expected = model(batch).square().mean().item()
    with coop.record(path) as recording:
        for _ in range(2):
            recording.step()
            loss = model(batch).square().mean()
            recording.annotate("backward")
            loss.backward()
    assert loss.item() == expected
    assert coop.stats().evictions == 0
    assert not torch.ops.coop.has_budget()
    info = coop_sim.json("info", path)
    assert info["steps"] == 2
    assert {"aten::addmm", "aten::tanh", "aten::tanh_backward"} <= {it["op"] for it in info["ops"]}
    assert info["peak_bytes"] > 20 * 1024 * 128 * 4 / 2
    # What another budget would cost.
    half = coop_sim.json("run", path, "--policy", "coop", "--ratio", ".7")
    assert half["status"] == "ok" and half["recomputed_calls"] > 0
    assert "recomputed, by operator" in coop_sim.text(
        "explain", path, "--policy", "coop", "--budget", info["peak_bytes"] * 7 // 10
    )
    assert "decisions=True" in coop_sim.refuses("check", path)


def test_small_operators_are_recorded(coop_sim, tmp_path):
    path = tmp_path / "step.coop"
    with coop.budget(8 * MIB):
        torch.ones(3).sin()  # light: the engine does not hear of it
        with coop.record(path):
            x = torch.arange(3.0)
            (x.cos() + 1).sum().item()
        light = _plugin.stats()["light_operators"]
        torch.ones(3).sin()
        assert _plugin.stats()["light_operators"] > light  # as before
    ops = {it["op"]: it["calls"] for it in coop_sim.json("info", path)["ops"]}
    assert ops["aten::cos"] == ops["aten::add.Tensor"] == ops["aten::sum"] == 1
    assert "aten::sin" not in ops


def test_in_the_middle_of_a_budget(coop_sim, tmp_path):
    """What is there comes from outside."""
    path = tmp_path / "step.coop"
    with coop.budget(16 * MIB):
        a = torch.rand(512, 512)
        b = a * 2
        with coop.record(path, decisions=True):
            c = a + b
    assert torch.equal(c, a * 3)
    found = coop_sim.json("check", path)
    assert found["is_late"]
    info = coop_sim.json("info", path)
    assert info["calls"] == 1
    assert 0 <= info["peak_bytes"] - 3 * 512 * 512 * 4 < 100  # and the number 2


# --- the file ---


def names_in(folder) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_costs_settle_and_are_measured_anew(tmp_path):
    path = tmp_path / "step.coop"
    x = torch.rand(300, 300)
    with coop.record(path):
        for _ in range(20):
            x.exp()
        torch.ops.coop.measure_costs_anew()
        for _ in range(20):
            x.exp()
    lines = path.read_text().splitlines()
    (name,) = [it.split()[1] for it in lines if it.startswith("name ") and it.endswith("aten::exp")]
    calls = [it.split() for it in lines]
    costs = [float(it[3]) for it in calls if it[0] == "call" and it[1] == name]
    assert len(costs) == 40
    before, after = costs[15:20], costs[35:]
    assert len(set(before)) == len(set(after)) == 1
    assert set(costs[20:]) != set(before)


def test_gzipped(coop_sim, tmp_path):
    path = tmp_path / "step.coop.gz"
    with coop.record(path):
        torch.ones(3)
    assert gzip.decompress(path.read_bytes()).startswith(b"coop-trace 2\n")
    assert coop_sim.json("info", path)["calls"] == 1


def test_an_exception_leaves_what_ran_until_then(coop_sim, tmp_path):
    path = tmp_path / "step.coop"
    with pytest.raises(KeyboardInterrupt), coop.record(path):
        torch.rand(100).exp()
        raise KeyboardInterrupt
    ops = {it["op"] for it in coop_sim.json("info", path)["ops"]}
    assert "aten::exp" in ops
    assert not torch.ops.coop.has_budget()
    assert names_in(tmp_path) == ["step.coop"]


def test_it_is_there_when_the_scope_has_ended(tmp_path):
    path = tmp_path / "step.coop"
    path.write_text("of old")
    with coop.record(str(path)):
        torch.ones(3)
        assert path.read_text() == "of old"
    assert path.read_text().startswith("coop-trace 2\n")
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_it_ends_with_its_budget(coop_sim, tmp_path):
    path = tmp_path / "step.coop"
    budget = coop.budget(8 * MIB)
    recording = coop.record(path)
    budget.__enter__()
    recording.__enter__()
    x = torch.rand(200, 200)
    budget.__exit__(None, None, None)
    x.exp()
    with pytest.raises(RuntimeError, match="nothing is being recorded"):
        recording.step()
    recording.__exit__(None, None, None)
    assert {it["op"] for it in coop_sim.json("info", path)["ops"]} == {"aten::rand"}


def test_where_nothing_can_be_written(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory"):
        coop.record(tmp_path).__enter__()
    with pytest.raises(FileNotFoundError, match=r"no recording can be written there.*none/step"):
        coop.record(tmp_path / "none" / "step.coop").__enter__()
    with pytest.raises(TypeError):
        coop.record(7)
    assert not torch.ops.coop.has_budget()
    assert names_in(tmp_path) == []
    os.mkfifo(tmp_path / "fifo")  # which a file would replace
    with pytest.raises(OSError, match="fifo is not an ordinary file"):
        coop.record(tmp_path / "fifo").__enter__()
    assert (tmp_path / "fifo").is_fifo()


def test_what_is_no_use_is_refused(tmp_path):
    path = tmp_path / "step.coop"
    with pytest.raises(RuntimeError, match="nothing is being recorded"):
        coop.record(path).step()
    with coop.record(path) as recording:
        with pytest.raises(RuntimeError, match="in progress already"):
            recording.__enter__()
        with pytest.raises(RuntimeError, match="a recording inside a recording"):
            coop.record(tmp_path / "other.coop").__enter__()
        with pytest.raises(RuntimeError, match="inside a budget"):
            coop.budget("8MiB").__enter__()
        with pytest.raises(ValueError, match="needs a text"):
            recording.annotate("")
        with pytest.raises(ValueError, match="control character"):
            recording.annotate("two\nlines")
        torch.ones(3)
    assert names_in(tmp_path) == ["step.coop"]
    with recording:  # once more
        torch.ones(3)
    assert path.exists()


def test_a_forked_child_leaves_it_alone(tmp_path):
    path = tmp_path / "step.coop"
    with coop.record(path):
        child = os.fork()
        if child == 0:
            os._exit(_leaves_scope(path))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        torch.rand(10).exp()
    assert "aten::exp" in path.read_text()


def _leaves_scope(path) -> int:
    frame_of_parent = [it for it in gc.get_objects() if isinstance(it, coop.record)]
    (recording,) = [it for it in frame_of_parent if it.path == path]
    try:
        recording._end(path.with_name("unfinished"), os.getppid())
    except BaseException:
        return 1
    return int(path.exists())


def test_threads(coop_sim, tmp_path):
    """Operators of two threads, one in the middle of the other's: all of them are there."""
    import threading

    path = tmp_path / "step.coop"

    def work():
        x = torch.rand(300, 300)
        for _ in range(200):
            x = (x @ x).tanh()

    with coop.budget(64 * MIB), coop.record(path, decisions=True):
        threads = [threading.Thread(target=work) for _ in range(2)]
        for it in threads:
            it.start()
        for it in threads:
            it.join()
    ops = {it["op"]: it["calls"] for it in coop_sim.json("info", path)["ops"]}
    assert ops["aten::mm"] == ops["aten::tanh"] == 400
    assert coop_sim.json("run", path, "--policy", "coop", "--ratio", "1.5")["status"] == "ok"
