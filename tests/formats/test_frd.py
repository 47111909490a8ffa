"""The .frd reader: fixed columns read fast, damaged files read as far as they go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaforge.formats.frd import UnreadableResults, read_frd, von_mises

HEADER = "    1C\n    1UVERSION           Version 2.20                             \n"
NODES = "    2C                             2                                     1\n"
MOMENT = "  100CL  101 2.500000000           2                     0    1           1\n"
DISP = " -4  DISP        4    1\n -5  D1          1    2    1    0\n -5  D2          1    2    2    0\n"
DISP += " -5  D3          1    2    3    0\n -5  ALL         1    2    0    0    1ALL\n"


def row(ident: int, *values: float | str, width: int = 10) -> str:
    return f" -1{ident:{width}d}" + "".join(v if isinstance(v, str) else f"{v:12.5E}" for v in values) + "\n"


def file(*rows: str, nodes: str = NODES) -> bytes:
    text = HEADER + nodes + row(3, 0, 0, 0) + row(5, 1, 2, 3) + " -3\n" + MOMENT + DISP + "".join(rows) + " -3\n 9999\n"
    return text.encode()


def test_nodes_and_results_are_read_by_their_columns() -> None:
    results = read_frd(file(row(3, 1, -2, 3), row(5, 4, 5, 6)))
    block = results.last("DISP")
    assert results.version == "2.20"
    assert results.node_ids.tolist() == [3, 5]
    assert results.coordinates_mm[1].tolist() == [1, 2, 3]
    assert block is not None
    assert (block.step, block.value, block.components) == (1, 2.5, ("D1", "D2", "D3"))
    assert block.values.tolist() == [[1, -2, 3], [4, 5, 6]]


def test_three_digit_exponents_that_push_columns_apart_are_read() -> None:
    block = read_frd(file(row(3, "-1.00000E-100", " 2.00000E+00", " 3.00000E+00"), row(5, 4, 5, 6))).last("DISP")
    assert block is not None
    assert block.values.tolist() == [[-1e-100, 2, 3], [4, 5, 6]]


def test_nan_and_infinity_are_read_as_such() -> None:
    block = read_frd(file(row(3, "         nan", "         inf", "        -inf"), row(5, 4, 5, 6))).last("DISP")
    assert block is not None
    assert np.isnan(block.values[0, 0])
    assert np.isinf(block.values[0, 1:]).all()


def test_a_truncated_file_gives_its_complete_blocks() -> None:
    whole = file(row(3, 1, 2, 3), row(5, 4, 5, 6))
    again = MOMENT + DISP + row(3, 7, 8, 9)
    results = read_frd(whole.replace(b" 9999\n", again.encode()))
    assert results.truncated
    assert [block.complete for block in results.blocks] == [True, False]
    last = results.last("DISP")
    assert last is not None
    assert last.values[0].tolist() == [1, 2, 3]


def test_elements_are_grouped_by_type_across_continuation_lines() -> None:
    hexa = " -1         1    4    0    1\n -2" + "".join(f"{i:10d}" for i in range(1, 11)) + "\n -2"
    hexa += "".join(f"{i:10d}" for i in range(11, 21)) + "\n"
    tet = " -1         9    3    0    1\n -2" + "".join(f"{i:10d}" for i in (1, 2, 3, 4)) + "\n"
    text = (
        HEADER
        + "    3C                             2                                     1\n"
        + hexa
        + tet
        + " -3\n 9999\n"
    )
    elements = read_frd(text.encode()).elements
    assert elements[4][0].tolist() == [1]
    assert elements[4][1].tolist() == [list(range(1, 21))]
    assert elements[3][1].tolist() == [[1, 2, 3, 4]]


def test_the_short_format_with_five_digit_ids_is_read() -> None:
    text = HEADER + NODES.replace("1\n", "0\n") + row(3, 0, 0, 0, width=5) + row(5, 1, 2, 3, width=5) + " -3\n 9999\n"
    assert read_frd(text.encode()).node_ids.tolist() == [3, 5]


def test_binary_results_are_refused() -> None:
    with pytest.raises(UnreadableResults, match="binary"):
        read_frd(file(nodes=NODES.rstrip()[:-1] + "2\n"))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"ISO-10303-21;", b"\x89PNG\r\n"])
def test_other_files_are_called_what_they_are_not(content: bytes) -> None:
    with pytest.raises(UnreadableResults, match="Not a CalculiX result file"):
        read_frd(content)


@given(st.binary(max_size=600))
@settings(max_examples=150, deadline=None)
def test_no_bytes_after_a_header_break_the_reader(tail: bytes) -> None:
    try:
        results = read_frd(file(row(3, 1, 2, 3))[:-10] + tail)
    except UnreadableResults:
        return
    assert all(len(block.node_ids) == len(block.values) for block in results.blocks)


@given(st.integers(0, 900), st.integers(0, 900), st.binary(min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_cut_and_overwritten_files_are_read_as_far_as_they_go(at: int, cut: int, patch: bytes) -> None:
    whole = bytearray(file(row(3, 1, 2, 3), row(5, 4, 5, 6)))
    whole[at : at + len(patch)] = patch
    try:
        results = read_frd(bytes(whole[: len(whole) - cut % len(whole)]))
    except UnreadableResults:
        return
    assert results.coordinates_mm.shape == (len(results.node_ids), 3)


def test_von_mises_of_uniaxial_and_shear_stress() -> None:
    stress = np.array([[100.0, 0, 0, 0, 0, 0], [0, 0, 0, 50.0, 0, 0], [30, 30, 30, 0, 0, 0]])
    assert von_mises(stress) == pytest.approx([100, 50 * np.sqrt(3), 0])
