"""Cells as a benchmark has them, with figures that are easy to tell apart."""

GIB = 1 << 30


def cell(network, kind, ratio, variant, **more):
    which = {"network": network, "kind": kind, "ratio": ratio, "variant": variant}
    facts = {"commit": "abc", "device": "cuda", "timed": 20, "limit": None, "batch": 16}
    facts |= {"when": "2026-11-16T10:00:00+00:00", "took_s": 9.0, "status": "ok"}
    return {**which, **facts, "device_name": "NVIDIA H200", "torch": "2.11.0", **more}


def measured(overhead, **more):
    return {
        "plain_s": 0.1,
        "step_s": 0.1 * (1 + overhead),
        "first_s": 0.3,
        "host_s": 0.05,
        "overhead": overhead,
        "early_overheads": {"1": overhead + 0.2, "5": overhead + 0.01},
        "plain_peak_bytes": 20 * GIB,
        "plain_reserved_bytes": 21 * GIB,
        "peak_bytes": 9 * GIB,
        "reserved_bytes": 10 * GIB,
        "losses": "equal",
        **more,
    }


def policy(network, ratio, variant, overhead, **more):
    counted = {
        "budget_bytes": int(ratio * 20 * GIB),
        "reserved_bytes": int(ratio * 20 * GIB),
        "memory_ratio": ratio,
        "evictions": 30.0,
        "recomputations": 40.0,
        "recomputed": overhead,
        "moved_bytes": 0.0,
        "searches": 0.0 if variant == "coop" else 2.0,
        "search_s": 0.0 if variant == "coop" else 0.004,
        "fragmentation": None if variant == "coop" else 0.031,
    }
    return cell(network, "ratio", ratio, variant, **{**measured(overhead, **counted), **more})


def lost(network, ratio, variant, status):
    return cell(network, "ratio", ratio, variant, status=status, why="and why")


def peer(variant, overhead, ratio):
    return cell("bert-large", "peers", None, variant, **measured(overhead, memory_ratio=ratio))


CELLS = [
    policy("bert-large", 0.5, "coop", 0.07),
    policy("bert-large", 0.5, "dtr", 0.347),
    policy("bert-large", 0.4, "coop", 0.14),
    lost("bert-large", 0.4, "dtr", "does not fit"),
    cell("bert-large", "not binding", None, "coop", **measured(-0.001)),
    peer("plain", 0.0, 1.0),
    peer("checkpoint", 0.285, 0.39),
    peer("coop@checkpoint", 0.138, 0.39),
    peer("save_on_cpu", 4.5, 0.6),
    peer("compile", -0.24, 1.7),
    peer("compile@0.5", -0.15, 1.05),
    cell("bert-large", "smallest", None, "coop", smallest_ratio=0.31, plain_peak_bytes=20 * GIB),
    cell("bert-large", "batch", None, "plain", largest_batch=13, limit=16 * GIB),
    cell("bert-large", "batch", None, "coop", largest_batch=41, limit=16 * GIB),
    policy("gpt-2.7b", 0.6, "coop", 0.05, losses="equal with deterministic algorithms"),
    lost("gpt-2.7b", 0.5, "coop", "does not fit"),
    lost("spos", 0.5, "coop", "timed out"),
    policy("spos", 0.5, "dtr", 0.2, losses="different"),
]
