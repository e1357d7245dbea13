"""The DTR prototype's simulator and ours, on its own logs: the same figures.

docs/peers.md says where they differ, and why.
"""

import math

import pytest
from dtr_reference import log_of, reference_cells

TOLERANCE = 0.01  # of the total time over the time without a budget

# Where we differ by more than that, and by how much at most. docs/peers.md has the figures, and
# test_dtr_prototype_model.py tests that the reasons are these:
# What is made again although nobody holds it stays in the prototype until it is evicted, and in our
# engine goes when it has been read.
DEAD_GO = "dead_stay"
# Besides, what was last used: in the prototype what was asked for, in our engine what was read.
LAST_USE = "dead_stay, used_when_asked"
# And then at the end outputs come back one by one in the prototype, and in ours at once.
OUTPUTS = "dead_stay, depth_first, outputs_in_turn"
# One that has come within the tolerance fails the test too: take it out.
KNOWN_DIFFERENCES = {
    ("tv_densenet121-84", 0.5): (0.02, DEAD_GO),
    ("tv_densenet121-84", 0.3): (0.02, LAST_USE),
    ("tv_densenet121-84", 0.2): (0.03, LAST_USE),
    ("resnet32-56", 0.2): (0.05, DEAD_GO),
    ("unet-6", 0.4): (math.inf, DEAD_GO),  # it fits, and theirs runs out of memory
    ("unet-6", 0.3): (math.inf, OUTPUTS),  # as well, at four times the time
    ("lstm-128", 0.3): (0.12, DEAD_GO),
    ("lstm-128", 0.2): (0.22, DEAD_GO),
}


@pytest.mark.parametrize(("trace", "ratio", "theirs"), list(reference_cells()))
def test_dtr_agrees_with_the_prototype(coop_sim, trace, ratio, theirs):
    world = ("--policy", "dtr", "--no-fragmentation")
    result = coop_sim.json("run", log_of(trace), *world, "--ratio", ratio)
    ours = 1 + result["overhead"] if result["status"] == "ok" else math.inf
    difference = 0 if ours == theirs else abs(ours - theirs)
    known, reason = KNOWN_DIFFERENCES.get((trace, ratio), (None, None))
    if known is None:
        assert difference <= TOLERANCE, f"ours {ours:.3f}, theirs {theirs:.3f}"
    else:
        assert difference > TOLERANCE, "this difference is gone: take it out of KNOWN_DIFFERENCES"
        grown = f"more than {reason} explains: ours {ours:.3f}, theirs {theirs:.3f}"
        assert difference <= known, grown
