"""The page runner finds a page that lies."""

from pathlib import Path

import pytest
from doc_blocks import Stage, blocks_of, difference_of, renewed, run_page


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    return Stage(tmp_path / "project", tmp_path / "home")


def page(*blocks: tuple[str, str]) -> str:
    return "\n\n".join(f"```{language}\n{text}\n```" for language, text in blocks) + "\n"


def problems(results) -> list[str]:
    return [result.problem for result in results if result.problem]


def test_blocks_are_found_with_their_attributes():
    blocks = list(blocks_of("a\n```bash needs=claude\nls\n```\n\n```text\nb\n```\n"))
    assert [(block.language, block.attributes, block.text, block.line) for block in blocks] == [
        ("bash", {"needs": "claude"}, "ls", 2),
        ("text", {}, "b", 6),
    ]


def test_a_true_page_passes(stage):
    assert problems(run_page(page(("bash", "echo 'stress 12.5 MPa'"), ("text", "stress 12.5 MPa")), stage)) == []


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo 'stress 12.5 MPa'", "stress 13.5 MPa"),
        ("echo 'stress 12.5 MPa'", "strain 12.5 MPa"),
        ("echo one; echo two", "one"),
        ("echo one", "one\ntwo"),
    ],
)
def test_a_wrong_output_is_a_problem(stage, command, text):
    assert len(problems(run_page(page(("bash", command), ("text", text)), stage))) == 1


def test_a_failing_command_is_a_problem(stage):
    assert "exit status 3" in problems(run_page(page(("bash", "exit 3")), stage))[0]


def test_blocks_share_one_folder(stage):
    assert problems(run_page(page(("bash", "echo hi > a"), ("bash", "cat a"), ("text", "hi")), stage)) == []


@pytest.mark.parametrize(("language", "text"), [("json", "{"), ("toml", "a ="), ("ruby", "puts 1"), ("", "x")])
def test_a_block_that_cannot_be_right_is_a_problem(stage, language, text):
    assert len(problems(run_page(page((language, text)), stage))) == 1


def test_times_ids_and_small_differences_are_free():
    assert difference_of("took 1.5 s, call 00ff00ff00ff00ff, 100 mm", "took 9.2 s, call 12ab34cd56ef7890, 101 mm") == ""


def test_dots_stand_for_any_lines():
    assert difference_of("first\n...\nlast", "first\na\nb\nlast") == ""
    assert difference_of("first\n...", "first\na") == ""
    assert difference_of("first\n...\nlast", "first\na\nb") != ""


def test_a_renewed_page_shows_what_was_printed(stage):
    old = page(("bash", 'echo "$PWD"; echo 2'), ("text", "old"))
    new = renewed(old, run_page(old, stage), stage)
    assert new == page(("bash", 'echo "$PWD"; echo 2'), ("text", "/home/you/project\n2"))
