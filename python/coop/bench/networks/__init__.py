"""The networks themselves. `coop.bench.catalog` has their names."""

from __future__ import annotations

from importlib import import_module

from coop.bench.catalog import Size
from coop.bench.networks.workload import Workload


def workload_of(size: Size, batch: int | None = None) -> Workload:
    """With another batch than its own, if one is named."""
    file, _, function = size.maker.partition(":")
    return getattr(import_module(f"coop.bench.networks.{file}"), function)(batch or size.batch)
