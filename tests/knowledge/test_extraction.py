"""Properties of parts: quoted where they stand, never invented, and not chosen where documents disagree."""

from collections.abc import Callable
from typing import Any

import pytest

from metaforge.core.errors import ToolError
from metaforge.knowledge.extraction import Property, extract
from metaforge.knowledge.library import Library
from metaforge.knowledge.passages import Passage
from metaforge.knowledge.selection import Limit, select

Put = Callable[..., Any]
HEADER = "Parameter | Min | Typ | Max | Unit"


def row(text: str, header: str = HEADER, heading: str = "", line: int = 7) -> Passage:
    return Passage(text, heading, None, line, "table_row", header)


@pytest.fixture
def shelf(library: Library, ingest: Put) -> Library:
    """A datasheet, a table of several parts, a note on another part, and prose."""
    ingest(
        library, "sheets/XR2206.md", knowledge_type="component",
        those=[
            Passage("XR2206 function generator. Rev. C, March 2021.", "XR2206", None, 1),
            row("Supply voltage | 10 | 12 | 26 | V"),
            row("Operating temperature | -40 | - | 85 | °C"),
            row("Output impedance | - | 600 | - | Ω"),
            row("LM555 supply voltage | 4.5 | - | 16 | V"),
            Passage("Package: DIP-16. The quiescent current is 12 mA.", "Notes", None, 30),
        ],
    )  # fmt: skip
    ingest(
        library, "regulators.csv", knowledge_type="component",
        those=[row(text, "Part | Input voltage max (V) | Output current (A) | Package") for text in (
            "LM317T | 40 | 1.5 | TO-220", "LM7805 | 35 | 1.0 | TO-220", "LP2950 | 30 | 0.1 | TO-92")],
    )  # fmt: skip
    ingest(
        library,
        "compare.md",
        knowledge_type="component",
        those=[row("Gain bandwidth | 1 | 3 | MHz", "Parameter | LM358N | TL072CP | Unit", line=4)],
    )
    return library


def read(library: Library, mpn: str, *names: str, project_id: str = "p", **aliases: list[str]) -> list[Property]:
    return extract(
        library, project_id, mpn, names, {key.replace("_", " "): value for key, value in aliases.items()}
    ).properties


def values(library: Library, mpn: str, *names: str, **aliases: list[str]) -> list[tuple[str, str] | None]:
    found = read(library, mpn, *names, **aliases)
    return [(each.best.value, each.best.unit) if each.best and each.is_agreed else None for each in found]


def test_a_column_of_the_part_s_row_gives_its_value_with_the_line(shelf: Library) -> None:
    (found,) = read(shelf, "LM317T", "max input voltage")
    assert found.best is not None
    assert (found.best.value, found.best.unit, found.best.line) == ("40", "V", 7)
    assert found.best.quote == "LM317T | 40 | 1.5 | TO-220"
    assert found.best.source_path == "regulators.csv"
    assert values(shelf, "lm-7805", "output_current", "package") == [("1.0", "A"), ("TO-220", "")]


def test_a_datasheet_s_rows_are_about_its_part(shelf: Library) -> None:
    assert values(shelf, "XR2206", "max supply voltage", "minimum supply voltage", "max operating temp") == [
        ("26", "V"), ("10", "V"), ("85", "°C"),
    ]  # fmt: skip
    assert values(shelf, "XR2206", "output impedance") == [("600", "Ω")]


def test_a_row_of_several_values_is_quoted_and_not_chosen_from(shelf: Library) -> None:
    (found,) = read(shelf, "XR2206", "supply voltage")
    assert found.best is not None
    assert not found.is_agreed
    assert found.best.cells == {"Min": "10", "Typ": "12", "Max": "26", "Unit": "V"}


def test_sentences_give_values_too(shelf: Library) -> None:
    assert values(shelf, "XR2206", "quiescent current") == [("12", "mA")]


def test_a_column_for_each_part_gives_that_part_s_value(shelf: Library) -> None:
    assert values(shelf, "TL072CP", "gain bandwidth") == [("3", "MHz")]
    assert values(shelf, "LM358N", "GBW", GBW=["gain bandwidth"]) == [("1", "MHz")]


def test_nothing_is_invented(shelf: Library) -> None:
    assert values(shelf, "XR2206", "weight", "package", "price") == [None, None, None]
    assert values(shelf, "LM555", "max supply voltage") == [None], "its row in another part's datasheet is no datasheet"
    facts = extract(shelf, "p", "NOPE123", ["weight"], {})
    assert not facts.is_found
    assert facts.properties[0].best is None
    assert not extract(shelf, "q", "LM317T", ["package"], {}).is_found


def test_the_datasheet_s_edition_is_read_or_taken_from_its_metadata(shelf: Library, ingest: Put) -> None:
    facts = extract(shelf, "p", "XR2206", ["supply voltage"], {})
    assert (facts.revision, facts.published_at, facts.source_path) == ("C", "March 2021", "sheets/XR2206.md")
    ingest(
        shelf, "doc-17.pdf", those=[Passage("Weight: 3 g.", "General", 1)],
        metadata={"mpn": "AB-9", "revision": "7", "published_at": "2024-02-01"},
    )  # fmt: skip
    facts = extract(shelf, "p", "AB-9", ["weight"], {})
    assert (facts.revision, facts.published_at, facts.source_path) == ("7", "2024-02-01", "doc-17.pdf")


def test_documents_that_disagree_are_all_quoted_and_none_is_believed(shelf: Library, ingest: Put) -> None:
    ingest(shelf, "old.csv", those=[row("LM317T | 37", "Part | Input voltage max (V)")])
    (found,) = read(shelf, "LM317T", "max input voltage")
    assert found.best is not None
    assert not found.is_agreed
    assert {found.best.value, *(each.value for each in found.also)} == {"40", "37"}


def choose(library: Library, *limits: Limit) -> dict[str, str]:
    chosen = select(
        library, "p", "LM317T LM7805 LP2950 package output current", limits, top_k=9, candidate_limit=20, aliases={}
    )
    return {each.mpn: each.verdict for each in chosen.suggestions}


def test_parts_are_judged_in_any_unit_by_what_is_quoted(shelf: Library) -> None:
    verdicts = choose(shelf, Limit("max input voltage", ">=", 36000, "mV"), Limit("output current", ">=", 500, "mA"))
    assert verdicts["LM317T"] == "pass"
    assert verdicts["LM7805"] == verdicts["LP2950"] == "fail"
    assert next(iter(verdicts)) == "LM317T"
    assert choose(shelf, Limit("package", "==", "to-92"))["LP2950"] == "pass"


def test_what_no_document_says_is_unknown_and_no_pass(shelf: Library) -> None:
    assert (
        choose(shelf, Limit("max input voltage", ">=", 36, "V"), Limit("weight", "<=", 3, "g"))["LM317T"] == "unknown"
    )
    assert choose(shelf, Limit("max input voltage", ">=", 36, "A"))["LM317T"] == "unknown"
    assert choose(shelf, Limit("max input voltage", ">=", 36))["LM317T"] == "unknown"
    with pytest.raises(ToolError, match="there is no unit 'Vots'"):
        choose(shelf, Limit("max input voltage", ">=", 36, "Vots"))
