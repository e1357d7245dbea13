"""What was evicted of what each operator made, and why not the rest."""

from __future__ import annotations

from collections import Counter

from op_db.made import EVICTED


def made_bytes(made: dict[str, int]) -> int:
    return sum(count for why, count in made.items() if why != EVICTED)


def _line(name: str, made: dict[str, int]) -> str:
    total = made_bytes(made)
    share = f"{made.get(EVICTED, 0) / total:7.1%}" if total else "      -"
    rest = Counter({why: n for why, n in made.items() if why not in (EVICTED, "none") and n})
    reasons = ", ".join(f"{why} {count / total:.1%}" for why, count in rest.most_common())
    return f"{name:48} {total:>12} {share}  {reasons}"


def print_table(rows: dict[str, dict[str, int]]) -> None:
    everything: Counter[str] = Counter()
    for made in rows.values():
        everything.update(made)
    print(f"{'operator':48} {'bytes made':>12} evicted  kept because")
    for name, made in rows.items():
        print(_line(name, made))
    print(_line("all", everything))
