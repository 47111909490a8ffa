"""The raw file reader: binary and ASCII, real and complex, broken off and damaged."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaforge.formats.spice_raw import UnreadableRaw, last_scale_value, read_raw, write_raw

NAMES = (("time", "time"), ("v(out)", "voltage"), ("i(v1)", "current"))


def header(
    points: int, flags: str = "real", names: tuple[tuple[str, str], ...] = NAMES, plot: str = "Transient"
) -> str:
    lines = ["Title: a circuit", f"Plotname: {plot}", f"Flags: {flags}", f"No. Variables: {len(names)}"]
    lines += [f"No. Points: {points}       ", "Variables:"]
    lines += [f"\t{index}\t{name}\t{kind}" for index, (name, kind) in enumerate(names)]
    return "\n".join(lines) + "\n"


def binary(points: int, *rows: tuple[float, ...], flags: str = "real") -> bytes:
    return header(points, flags).encode() + b"Binary:\n" + b"".join(struct.pack(f"<{len(r)}d", *r) for r in rows)


def test_binary_rows_become_columns_with_their_names() -> None:
    (plot,) = read_raw(binary(2, (0.0, 1.0, -2.0), (0.5, 3.0, 4.0)))
    assert [variable.name for variable in plot.variables] == ["time", "v(out)", "i(v1)"]
    assert plot.scale.tolist() == [0.0, 0.5]
    column = plot.column("V(OUT)")
    assert column is not None
    assert column.tolist() == [1.0, 3.0]
    assert plot.complete


def test_the_imaginary_part_of_a_frequency_is_not_believed() -> None:
    row = (1000.0, 3.2e209, 1.0, -1.0, 0.0, 2.0)
    (plot,) = read_raw(binary(1, row, flags="complex"))
    assert plot.is_complex
    assert plot.scale.tolist() == [1000.0]
    assert plot.values[0, 1] == 1 - 1j


@pytest.mark.parametrize("complex_values", [False, True])
def test_ascii_gives_what_binary_gives(complex_values: bool) -> None:
    text = header(2, "complex" if complex_values else "real") + "Values:\n"
    for index, row in enumerate(((0.0, 1.5, -2e-12), (0.5, 3.0, 4e3))):
        values = [f"{v:.15e},{v / 2:.15e}" if complex_values else f"{v:.15e}" for v in row]
        text += f"{index}\t\t{values[0]}\n" + "".join(f"\t{value}\n" for value in values[1:]) + "\n"
    (plot,) = read_raw(text.encode())
    assert plot.values.real.tolist() == [[0.0, 1.5, -2e-12], [0.5, 3.0, 4e3]]
    assert plot.is_complex is complex_values
    if complex_values:
        assert plot.values.imag[1].tolist() == [0.25, 1.5, 2e3]


def test_a_run_that_broke_off_keeps_the_points_it_got_to() -> None:
    (plot,) = read_raw(binary(0, (0.0, 1.0, 2.0), (0.1, 1.1, 2.1)) + b"\x00" * 11)
    assert plot.values.shape == (2, 3)
    assert not plot.complete


def test_a_cut_off_file_gives_its_whole_rows_and_says_that_it_is_cut() -> None:
    whole = binary(3, (0.0, 1.0, 2.0), (0.1, 1.1, 2.1), (0.2, 1.2, 2.2))
    (plot,) = read_raw(whole[:-5])
    assert plot.values.shape == (2, 3)
    assert not plot.complete


def test_several_plots_stand_behind_each_other() -> None:
    first = binary(1, (1.0, 2.0, 3.0))
    second = (header(1, names=(("onoise_total", "voltage"),), plot="Integrated Noise") + "Binary:\n").encode()
    plots = read_raw(first + second + struct.pack("<d", 7e-6))
    assert [plot.name for plot in plots] == ["Transient", "Integrated Noise"]
    assert plots[1].values.tolist() == [[7e-6]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 something else\n", "Not a SPICE raw file"),
        (header(1).encode(), "ends inside its header"),
        (header(1).replace("No. Points: 1", "No. Points: many").encode() + b"Binary:\n", "no usable"),
        (header(1, "real fastaccess").encode() + b"Binary:\n" + b"\0" * 24, "not read here"),
        (header(1).replace("No. Variables: 3", "No. Variables: 30000000").encode() + b"Binary:\n", "says it has"),
    ],
)
def test_what_is_no_raw_file_is_refused_with_the_reason(content: bytes, words: str) -> None:
    with pytest.raises(UnreadableRaw, match=words):
        read_raw(content)


def test_what_is_written_reads_as_the_same_without_what_lay_in_memory() -> None:
    one, other = (
        binary(1, (1000.0, junk, 1.0, -1.0, 0.5, 2.0), flags="complex")
        .replace(b"time\ttime", b"frequency\tfrequency")
        .replace(b"Plotname", b"Date: Mon Nov 30 19:14:40 2026\nPlotname")
        for junk in (3.2e209, float("nan"))
    )
    written = write_raw(read_raw(one))
    assert written == write_raw(read_raw(other))
    (plot,) = read_raw(written)
    assert plot.complete
    assert plot.values.tolist() == [[1000, 1 - 1j, 0.5 + 2j]]
    assert b"Date" not in written


def test_progress_is_read_from_a_file_that_is_still_being_written() -> None:
    content = binary(0, (0.0, 1.0, 2.0), (0.1, 1.1, 2.1), (0.2, 1.2, 2.2)) + b"\x00" * 8
    head, start = content[:4096], content.find(b"Binary:\n") + 8
    assert last_scale_value(head, content[start:]) == 0.2
    assert last_scale_value(head, b"") is None
    assert last_scale_value(b"Title: not yet", content[start:]) is None


@given(st.binary(max_size=400), st.integers(0, 400))
@settings(max_examples=150, deadline=None)
def test_damaged_files_are_refused_or_read_but_never_crash(junk: bytes, at: int) -> None:
    whole = binary(2, (0.0, 1.0, 2.0), (0.1, 1.1, 2.1))
    damaged = whole[:at] + junk + whole[at + len(junk) // 2 :]
    try:
        plots = read_raw(damaged)
    except UnreadableRaw:
        return
    assert all(plot.values.shape[1] == len(plot.variables) for plot in plots)
    assert all(isinstance(plot.values, np.ndarray) for plot in plots)


@pytest.mark.parametrize("count", ["\u00b2", "9" * 5000, "-1", ""])
def test_a_count_that_is_no_count_is_refused(count: str) -> None:
    damaged = header(2).replace("No. Points: 2 ", f"No. Points: {count} ")
    with pytest.raises(UnreadableRaw, match="no usable"):
        read_raw((damaged + "\nBinary:\n").encode())


def test_a_header_without_variables_is_refused() -> None:
    with pytest.raises(UnreadableRaw, match="names no variables"):
        read_raw(
            header(2).replace("\nVariables:", "\nOthers:").partition("\n\t0")[0].encode() + b"\nValues:\n 0\t0.0\n"
        )
