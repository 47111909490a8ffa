"""Boards routed by an existing router: the rule check decides what stays, and what is missing is counted."""

import itertools
from typing import Any

import pytest

from metaforge.adapters.kicad.routing import _offending, _settled

routes = [pytest.mark.program("kicad-cli"), pytest.mark.program("freeroute")]


def rows(draw: Any, count: int) -> str:
    """Parts in two columns, each pad of the left connected with one of the right."""
    nets = "\n".join(f'(net {n} "N{n}")' for n in range(3, 3 + 2 * count))
    parts: list[str] = []
    for row in range(count):
        first, second = 3 + 2 * row, 4 + 2 * row
        y = 4 + 4 * row
        parts.append(draw.footprint(1000 + 100 * row, f"R{row}", 4, y, [(first, f"N{first}"), (second, f"N{second}")]))
        parts.append(draw.footprint(5000 + 100 * row, f"J{row}", 24, y, [(second, f"N{second}"), (first, f"N{first}")]))
    return draw.board(nets, draw.outline(36, 4 * count + 6), *parts)


@pytest.fixture
def two_parts(draw: Any) -> str:
    left = draw.footprint(100, "R1", 4, 10, [(1, "GND"), (2, "VCC")])
    right = draw.footprint(200, "R2", 20, 10, [(2, "VCC"), (1, "GND")])
    return str(draw.board(draw.outline(32, 20), left, right))


class TestRouting:
    pytestmark = routes

    async def test_a_small_board_is_routed_whole_and_passes_its_check(self, kicad: Any, two_parts: str) -> None:
        kicad.write("d.kicad_pcb", two_parts)
        kicad.write("d.kicad_pro", '{"meta": {"filename": "d.kicad_pro", "version": 3}}')
        answer = await kicad.call("auto_route", pcb_file="d.kicad_pcb")
        data = answer["data"]
        assert (data["passed"], data["connections_count"], data["routed_count"], data["errors"]) == (True, 2, 2, 0)
        assert data["track_length_mm"] > 10
        assert {file["path"] for file in answer["files"]} == {"kicad/d-routed.kicad_pcb", "kicad/d-routed.kicad_pro"}
        kicad.write("routed.kicad_pcb", kicad.written("kicad/d-routed.kicad_pcb"))
        check = await kicad.data("run_drc", pcb_file="routed.kicad_pcb")
        assert (check["unconnected_items"], check["errors"]) == (0, 0)

    async def test_the_same_board_is_routed_to_the_same_file(self, kicad: Any, two_parts: str) -> None:
        kicad.write("d.kicad_pcb", two_parts)
        found = []
        for _ in range(2):
            await kicad.call("auto_route", pcb_file="d.kicad_pcb", output_path="out/d.kicad_pcb")
            found.append(kicad.written("out/d.kicad_pcb"))
        assert found[0] == found[1]

    async def test_crossing_connections_keep_the_rules_and_missing_ones_are_counted(
        self, kicad: Any, draw: Any
    ) -> None:
        kicad.write("d.kicad_pcb", rows(draw, 4))
        answer = await kicad.call("auto_route", pcb_file="d.kicad_pcb")
        data = answer["data"]
        assert data["connections_count"] == 8
        assert data["errors"] == 0
        kicad.write("routed.kicad_pcb", kicad.written(data["output_file"]))
        check = await kicad.data("run_drc", pcb_file="routed.kicad_pcb", max_violations=100)
        assert check["unconnected_items"] == data["unrouted_count"] == 8 - data["routed_count"]
        assert data["passed"] is (data["unrouted_count"] == 0)
        assert not {"clearance", "shorting_items", "tracks_crossing"} & check["by_type"].keys()

    async def test_a_board_with_tracks_is_only_routed_anew_when_asked(
        self, kicad: Any, draw: Any, two_parts: str
    ) -> None:
        kicad.write("d.kicad_pcb", two_parts.rstrip()[:-1] + draw.track(1, (4, 10), (4, 14), 1) + ")\n")
        refusal = await kicad.refused("auto_route", pcb_file="d.kicad_pcb")
        assert (refusal.data["kind"], "remove_tracks: true" in refusal.data["fix"]) == ("already_routed", True)
        assert (await kicad.data("auto_route", pcb_file="d.kicad_pcb", remove_tracks=True))["passed"] is True

    async def test_a_board_without_connections_is_refused(self, kicad: Any, draw: Any) -> None:
        kicad.write("d.kicad_pcb", draw.board(draw.outline(), draw.footprint(100, "R1", 4, 10, [(1, "GND")])))
        assert (await kicad.refused("auto_route", pcb_file="d.kicad_pcb")).data["kind"] == "nothing_to_route"


async def test_without_a_router_it_says_how_to_get_one(
    kicad: Any, two_parts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    kicad.write("d.kicad_pcb", two_parts)
    refusal = await kicad.refused("auto_route", pcb_file="d.kicad_pcb")
    assert (refusal.data["kind"], refusal.data["failure_mode"]) == ("program_missing", "environment")
    assert "metaforge[routing]" in refusal.data["fix"]


@pytest.mark.program("freeroute")
async def test_without_kicads_python_module_it_says_so(
    kicad: Any, two_parts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from metaforge.adapters.kicad import router

    monkeypatch.setattr(router, "PYTHONS", ())
    router.pcbnew_python.cache_clear()
    kicad.write("d.kicad_pcb", two_parts)
    refusal = await kicad.refused("auto_route", pcb_file="d.kicad_pcb")
    assert "pcbnew" in refusal.message
    assert "apt-get install" in refusal.data["fix"]


def test_the_fewest_pieces_are_taken_back() -> None:
    from metaforge.adapters.kicad.router import Routes
    from metaforge.adapters.kicad.routing import Attempt
    from metaforge.formats.kicad_report import Item, Violation

    def short(*uuids: str) -> Violation:
        return Violation("shorting_items", "error", "", tuple(Item("", 0, 0, each) for each in uuids))

    wrong = [short("a", "b"), short("a", "c"), short("a", "pad"), short("d", "pad")]
    attempt = Attempt("exact", Routes({}, {}), "", wrong, {name: name.upper() for name in "abcd"})
    assert _offending(attempt) == {"A", "D"}


def test_ids_follow_from_where_tracks_are_not_from_their_order() -> None:
    pieces = [f'\n\t(segment\n\t\t(start {x} 1)\n\t\t(net 1)\n\t\t(uuid "{x}{x}")\n\t)' for x in (1, 2, 3)]
    texts = {_settled("(kicad_pcb" + "".join(order) + "\n)", "") for order in itertools.permutations(pieces)}
    assert len(texts) == 1
    assert texts.pop().count("(uuid ") == 3
