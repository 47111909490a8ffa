"""What only KiCad's own Python module can do with a board; run by the Python that has it, on its own.

python3 pcbnew_jobs.py prepare BOARD OUT DESIGN      a copy without tracks, its zones filled, and its Specctra design
python3 pcbnew_jobs.py apply BOARD ROUTES OUT IDS    a copy with the tracks and vias of a JSON file; their ids by uuid
"""

import json
import sys
from itertools import pairwise

import pcbnew


def prepare(source: str, target: str, design: str) -> None:
    """Write a copy without tracks and its design."""
    board = pcbnew.LoadBoard(source)
    for track in list(board.GetTracks()):
        board.Delete(track)
    _fill(board)
    pcbnew.SaveBoard(target, board)
    if not pcbnew.ExportSpecctraDSN(board, design):
        sys.exit("no Specctra design could be written: the board needs one closed outline, and parts with references")


def apply(source: str, routes: str, target: str, ids: str) -> None:
    """Write a copy with tracks and vias, and which of them is which."""
    board = pcbnew.LoadBoard(source)
    with open(routes, encoding="utf-8") as stream:
        routed = json.load(stream)
    layers = list(board.GetEnabledLayers().CuStack())
    known: dict[str, str] = {}
    for number, wire in routed["wires"].items():
        points = [pcbnew.VECTOR2I(pcbnew.FromMM(x), pcbnew.FromMM(y)) for x, y in wire["points_mm"]]
        for start, end in pairwise(points):
            track = pcbnew.PCB_TRACK(board)
            track.SetStart(start)
            track.SetEnd(end)
            track.SetWidth(pcbnew.FromMM(wire["width_mm"]))
            track.SetLayer(layers[wire["layer"]])
            _add(board, track, wire["net"], number, known)
    for number, routed_via in routed["vias"].items():
        via = pcbnew.PCB_VIA(board)
        x, y = routed_via["at_mm"]
        via.SetPosition(pcbnew.VECTOR2I(pcbnew.FromMM(x), pcbnew.FromMM(y)))
        via.SetWidth(pcbnew.FromMM(routed_via["diameter_mm"]))
        via.SetDrill(pcbnew.FromMM(routed_via["drill_mm"]))
        via.SetLayerPair(pcbnew.F_Cu, pcbnew.B_Cu)
        _add(board, via, routed_via["net"], number, known)
    _fill(board)
    pcbnew.SaveBoard(target, board)
    with open(ids, "w", encoding="utf-8") as stream:
        json.dump(known, stream)


def _add(board: "pcbnew.BOARD", item: "pcbnew.PCB_TRACK", net: str, number: str, known: dict[str, str]) -> None:
    found = board.FindNet(net)
    if found is None:
        sys.exit(f"the router named a net that the board does not have: {net}")
    item.SetNet(found)
    board.Add(item)
    known[item.m_Uuid.AsString()] = number


def _fill(board: "pcbnew.BOARD") -> None:
    if board.Zones():
        pcbnew.ZONE_FILLER(board).Fill(board.Zones())


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(*sys.argv[2:5])
    else:
        apply(*sys.argv[2:6])
