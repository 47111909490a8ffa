"""Cutting bytes into lines, whatever the pieces they come in."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from metaforge.mcp.pipes import LineReader

LIMIT_BYTES = 20


def read(pieces):
    lines, dropped, ends = [], [], []
    reader = LineReader(LIMIT_BYTES, lines.append, dropped.append, lambda: ends.append(1))
    for piece in pieces:
        reader.data_received(piece)
    reader.eof_received()
    reader.connection_lost(None)
    return lines, len(dropped), len(ends)


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"x")), max_size=8), st.data())
def test_the_lines_do_not_depend_on_the_pieces(lines, data):
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    bounds = [0, *cuts, len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(bounds)]

    seen, dropped, ends = read(pieces)

    kept = [line for line in lines if len(line) <= LIMIT_BYTES]
    assert seen == [line for line in kept if line and not line.isspace()]
    assert dropped == len(lines) - len(kept)
    assert ends == 1


def test_a_line_without_end_is_dropped_once_and_not_kept():
    lines, dropped, _ = read([b"x" * 15] * 100 + [b"\nok\n"])
    assert (lines, dropped) == ([b"ok"], 1)


def test_the_id_of_a_dropped_request_is_found_only_before_its_parameters():
    found = []
    for head in (
        b'{"jsonrpc":"2.0", "id" : 7,',
        b'{"method":"a","id":"x",',
        b'{"params":{"id":7}',
        b'{"id":7.5,',
        b'{"id":"a\\"b",',
    ):
        reader = LineReader(4, lambda line: None, found.append, lambda: None)
        reader.data_received(head + b" " * 50)
    assert found == [b"7", b'"x"', None, None, None]
