"""What goes from one device to the other, and what was made from what is overwritten by that."""

import pytest
import torch
from coop import _plugin
from two_stages import MIB, SECOND, stress

PAIRS = [("cpu", SECOND), (SECOND, "cpu")]


def counted(device, begin=0.0):
    return (torch.arange(5000.0) + begin).to(device)


@pytest.mark.parametrize(("to", "of"), PAIRS)
def test_copy_over_what_others_were_made_from(to, of):
    with stress("cpu"), stress(SECOND):
        a, b = counted(to), counted(of, 7) + 1
        y = a * 2
        chain = [y + 1]
        for _ in range(5):
            chain.append(chain[-1].tanh())
        last = chain[-1]
        wanted = (torch.arange(5000.0) * 2 + 1).tanh().tanh().tanh().tanh().tanh()
        del chain
        assert not torch.ops.coop.is_resident(last)
        a.copy_(b)
        assert torch.equal(a.cpu(), torch.arange(5000.0) + 8)
        assert torch.equal(y.cpu(), torch.arange(5000.0) * 2)
        assert torch.equal(last.cpu(), wanted)


@pytest.mark.parametrize(("to", "of"), PAIRS)
def test_add_what_comes_from_the_other(to, of):
    with stress("cpu"), stress(SECOND):
        a, b = counted(of) + 1, counted(to) * 3
        y, z = b + 1, b[10:20] * 2
        c = a * 5
        b.add_(a.to(to))
        a.mul_(2)
        assert torch.equal(b.cpu(), torch.arange(5000.0) * 4 + 1)
        assert torch.equal(y.cpu(), torch.arange(5000.0) * 3 + 1)
        assert torch.equal(z.cpu(), torch.arange(10.0, 20.0) * 6)
        assert torch.equal(c.cpu(), (torch.arange(5000.0) + 1) * 5)
        assert torch.equal(a.cpu(), (torch.arange(5000.0) + 1) * 2)


def test_a_number_of_the_hosts_changes():
    """A tensor of no dimensions, in an operator of the other device's."""
    with stress("cpu"), stress(SECOND):
        x = counted(SECOND)
        scale = torch.ones(()) * 3
        y = x * scale
        z = y + 1
        scale.fill_(100)
        assert torch.equal(y.cpu(), torch.arange(5000.0) * 3)
        assert torch.equal(z.cpu(), torch.arange(5000.0) * 3 + 1)
        x.mul_(scale)
        assert torch.equal(x.cpu(), torch.arange(5000.0) * 100)
        assert torch.equal(z.cpu(), torch.arange(5000.0) * 3 + 1)


def test_what_was_copied_is_not_copied_again():
    """The copy cannot be made again: its source is another budget's."""
    with stress("cpu"), stress(SECOND):
        a = counted("cpu") + 1
        b = a.to(SECOND)
        c = b * 2
        assert torch.ops.coop.is_resident(b)
        assert not torch.ops.coop.is_resident(c)
        a.zero_()
        del a
        assert torch.equal(c.cpu(), (torch.arange(5000.0) + 1) * 2)


def test_random_numbers():
    def draw():
        torch.manual_seed(3)
        torch.ops.second.manual_seed(4)
        x, y = torch.rand(5000), torch.rand(5000, device=SECOND)
        masks = [torch.bernoulli(y), torch.bernoulli(x).to(SECOND) * y]
        masks += [torch.nn.functional.dropout(it * 2, 0.5) for it in (*masks, x, y)]
        sums = [it.sum().item() for it in masks] * 2
        states = torch.ops.second.random_state(0), torch.get_rng_state().tolist()
        return [it.cpu() for it in masks], sums, states

    masks, sums, states = draw()
    with stress("cpu"), stress(SECOND):
        inside, sums_inside, states_inside = draw()
        assert all(torch.equal(a, b) for a, b in zip(inside, masks, strict=True))
    assert (sums_inside, states_inside) == (sums, states)


@pytest.mark.parametrize(("to", "of"), PAIRS)
def test_empty_like_and_other_templates(to, of):
    with stress("cpu"), stress(SECOND):
        a = counted(of) + 1
        made = [
            torch.zeros_like(a, device=to) + 1,
            torch.full_like(a, 3, device=to) * 2,
            a.new_ones(5000, device=to) + 2,
            torch.randn_like(a, device=to) * 0,
        ]
        a.zero_()
        assert [it[-1].item() for it in made] == [1, 6, 3, 0]
        assert all(it.device == torch.device(to) for it in made)


def test_a_hidden_state_goes_to_and_fro():
    def steps():
        x = torch.linspace(0, 1, 5000)
        for i in range(30):
            y = (x.to(SECOND) * 1.5).tanh_()
            x.mul_(0.5).add_(y.cpu())
            if i % 3 == 0:
                x = x + 0
        return x

    wanted = steps()
    with stress("cpu"), stress(SECOND):
        assert torch.equal(steps(), wanted)
        torch.ops.coop.validate()


def test_at_ease_what_crosses_is_there_when_memory_gets_short():
    def budgets(it):
        return _plugin.budget(32 * MIB, device=it, small_limit=256)

    with budgets("cpu"), budgets(SECOND):
        assert torch.ops.coop.begin_ease()
        x = torch.arange(0.5 * MIB)
        y = x.to(SECOND)  # 2 MiB each
        z = (y * 2).cpu()
        kept = [z + i for i in range(4)]
        more = []
        for i in range(20):
            assert torch.equal((y + i).cpu(), x + i)
            more += [x + i, y + i]
        assert all(_plugin.stats(it)["evictions"] > 0 for it in ("cpu", SECOND))
        for i, it in enumerate(kept):
            assert torch.equal(it, x * 2 + i)
        for i in range(20):
            assert torch.equal(more[2 * i], x + i)
            assert torch.equal(more[2 * i + 1].cpu(), more[2 * i])
        torch.ops.coop.validate()
