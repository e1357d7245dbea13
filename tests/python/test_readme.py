"""What the documents show is what the programs print, measured times aside."""

import pytest
from refresh_docs import DOCUMENTS, difference, run_aside, shown_commands

SHOWN = [shown for document in DOCUMENTS for shown in shown_commands(document)]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown.document}: {shown.command}")
def test_document_shows_what_is_printed(shown, coop_sim):
    changed = difference(shown, run_aside(shown.command))
    assert not changed, f"make docs writes it down anew:\n{changed}"


def test_documents_show_something():
    assert {shown.document for shown in SHOWN} == set(DOCUMENTS)
