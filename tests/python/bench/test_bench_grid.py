"""Which cells there are, what is left of them, and how long they take."""

import json
from dataclasses import replace

import pytest
from coop.bench.catalog import NETWORKS
from coop.bench.grid import BATCH, FREE, PEERS, RATIO, SMALLEST, Case
from coop.bench.progress import Estimates, as_duration
from coop.bench.results import NotResultsError, Results, last_of_each, read, write_all


def test_a_process_for_every_network_and_ratio(wanted):
    cases = wanted.cases()
    assert [(it.network, it.kind, it.ratio) for it in cases] == [
        (network, kind, ratio)
        for network in ("bilstm", "spos")
        for kind, ratio in ((RATIO, 0.5), (RATIO, 0.8), (FREE, None), (PEERS, None))
    ]
    assert cases[0].variants == ("coop", "dtr")
    assert cases[3].variants == ("plain", "checkpoint", "coop@checkpoint")


def test_peers_that_compile_are_several_and_none_twice(wanted):
    cases = replace(wanted, peers=("compile", "compile_budget")).cases()
    (variants,) = {it.variants for it in cases if it.kind == PEERS}
    assert variants[:2] == ("plain", "compile")
    assert len(variants) > 3 == len({*variants[:3]})
    assert all(it.startswith("compile@0.") for it in variants[2:])


def test_without_policies_peers_are_all_there_is(wanted):
    assert {it.kind for it in replace(wanted, policies=()).cases()} == {PEERS}


def test_what_is_searched_for_is_wanted_by_name(wanted):
    kinds = {it.kind for it in wanted.cases()}
    more = {it.kind for it in replace(wanted, has_smallest=True, limit=1 << 30).cases()}
    assert more - kinds == {SMALLEST, BATCH}


def test_every_network_has_what_the_grid_takes(wanted):
    assert len([it for it in NETWORKS.values() if not it.variant_of]) == 10
    for network in NETWORKS.values():
        assert network.variant_of is None or NETWORKS[network.variant_of].variant_of is None
        assert network.variant_of or network.cpu
        assert network.layers
        assert network.cpu is None or network.cpu.needs is None
        sizes = [it for it in (network.cpu, network.cuda) if it]
        assert all(size.batch > 0 and size.step_s > 0 for size in sizes)


def found(**more):
    return {"status": "ok", "took_s": 7.0, "plain_s": 0.5, **more}


def test_what_is_there_is_not_measured_again(wanted, tmp_path):
    path = tmp_path / "kept.jsonl"
    results = Results.kept_in(path, "abc")
    case = wanted.cases()[0]
    assert results.missing(wanted, case) == case
    results.keep(wanted, case, "coop", **found())
    for kept in (results, Results.kept_in(path, "abc")):
        assert kept.missing(wanted, case).variants == ("dtr",)
        assert [it["variant"] for it in kept.of(wanted)] == ["coop"]
    other = wanted.cases()[1]
    assert results.missing(wanted, other) == other
    # Of another commit, or with other steps, it says nothing of these.
    assert Results.kept_in(path, "def").missing(wanted, case) == case
    assert results.missing(replace(wanted, timed=20), case) == case
    assert results.of(replace(wanted, device="cuda")) == []


def test_measured_again_the_last_counts(wanted, tmp_path):
    results = Results.kept_in(tmp_path / "kept.jsonl", "abc")
    case = wanted.cases()[0]
    for overhead in (0.1, 0.2):
        results.keep(wanted, case, "coop", **found(overhead=overhead))
    assert [it["overhead"] for it in results.of(wanted)] == [0.2]
    later = Results.kept_in(results.path, "def")
    later.keep(wanted, case, "coop", **found(overhead=0.3))
    assert [it["overhead"] for it in last_of_each(later.cells)] == [0.3]


def test_files_are_read_as_they_were_written(wanted, tmp_path):
    results = Results.kept_in(tmp_path / "kept.jsonl", "abc")
    results.keep(wanted, wanted.cases()[0], "coop", **found())
    write_all(tmp_path / "all.json", results.cells)
    assert read(tmp_path / "all.json") == read(results.path) == results.cells
    assert json.loads((tmp_path / "all.json").read_text()) == {"cells": results.cells}
    for number, other in enumerate(('{"a": 1}', "[]\n[]", "no JSON", '{"cells": 3}')):
        path = tmp_path / f"other_{number}"
        path.write_text(other)
        with pytest.raises(NotResultsError, match="nothing that coop bench has written"):
            read(path)


def test_estimates_know_what_it_took_before(wanted):
    case = Case("bilstm", RATIO, 0.5, ("coop", "dtr"))
    guess = Estimates.of(wanted, [])
    assert guess.case(case) == guess.cell(case, "coop") + guess.cell(case, "dtr")
    cell = {"device": "cpu", "network": "bilstm", "kind": RATIO, "ratio": 0.5, "variant": "coop"}
    known = Estimates.of(wanted, [found(timed=2, **cell)])
    assert known.cell(case, "coop") == 7.0
    assert known.cell(case, "dtr") > guess.cell(case, "dtr")  # a plain step took half a second
    elsewhere = Estimates.of(wanted, [found(timed=2, **{**cell, "device": "cuda"})])
    assert elsewhere.case(case) == guess.case(case)


def test_what_cannot_fit_takes_no_time(wanted):
    estimates = Estimates.of(replace(wanted, device="cuda"), [])
    half, more = (Case("gpt-2.7b", RATIO, ratio, ("coop", "dtr")) for ratio in (0.5, 0.6))
    assert estimates.cell(half, "dtr") < estimates.cell(more, "dtr") / 5


def test_durations_are_readable():
    assert list(map(as_duration, (0, 89, 91, 3000, 5460))) == [
        "0 s",
        "89 s",
        "2 min",
        "50 min",
        "1 h 31 min",
    ]
