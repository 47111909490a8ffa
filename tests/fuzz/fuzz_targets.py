"""Every parser that reads bytes from outside, what it may say about bad ones, and good ones to start from.

A target takes bytes and returns; the errors that its parser names are answers, anything else is a crash.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Target:
    """One parser."""

    run: Callable[[bytes], object]
    answers: tuple[type[BaseException], ...]
    """What it may raise."""
    seeds: tuple[bytes, ...]
    modules: tuple[str, ...]
    """Where branches are counted."""


def text(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: parse(data.decode("utf-8", "replace"))


def message(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def json_rpc() -> Target:
    from metaforge.core.errors import MetaForgeError
    from metaforge.protocol import handshake, jsonrpc, stateless

    def run(data: bytes) -> None:
        decoded = jsonrpc.decode(data)
        jsonrpc.encode(decoded)
        params = decoded.get("params") or {}
        if stateless.is_stateless(params):
            stateless.read_envelope(str(decoded.get("method")), params, None)
        if decoded.get("method") == "initialize":
            handshake.read_initialize(params)

    client = {"name": "c", "version": "1"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": client,
        "io.modelcontextprotocol/clientCapabilities": {},
    }  # fmt: skip
    seeds = (
        message("initialize", protocolVersion="2025-11-25", capabilities={"elicitation": {}}, clientInfo=client),
        message("tools/call", name="a.b", arguments={"x": [1, 2.5, None, True]}, _meta={"progressToken": 0}),
        message("tools/call", name="a.b", arguments={}, _meta=meta),
        b'{"jsonrpc": "2.0", "id": "7", "result": {"action": "accept"}}',
        b'[{"jsonrpc": "2.0", "method": "ping"}]',
    )
    return Target(run, (MetaForgeError,), seeds, ("metaforge.protocol",))


def http_requests() -> Target:
    """Whole requests: a request line, headers and a body, against the server's own entrance."""
    from tiny import TinyService

    from metaforge.core.ids import new_session_id
    from metaforge.mcp.http import HttpServer
    from metaforge.settings import Settings

    loop = asyncio.new_event_loop()
    server: list[HttpServer] = []

    async def begin() -> None:
        settings = Settings.load({"METAFORGE_HOME": tempfile.mkdtemp(), "METAFORGE_MAX_REQUEST_MB": "1"})
        server.append(HttpServer(TinyService(), settings, "127.0.0.1"))
        server[0].start()

    async def serve(method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> list[Any]:
        sent: list[Any] = []
        given = [{"type": "http.request", "body": body}]

        async def receive() -> dict[str, Any]:
            # Whoever has read the body finds the client gone: no stream stays open.
            return given.pop() if given else {"type": "http.disconnect"}

        async def send(event: dict[str, Any]) -> None:
            sent.append(event)

        scope = {
            "type": "http", "method": method, "path": path, "headers": headers, "query_string": b"", "scheme": "http",
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000), "http_version": "1.1",
        }  # fmt: skip
        async with asyncio.timeout(20):
            await server[0](scope, receive, send)
        return sent

    loop.run_until_complete(begin())

    def run(data: bytes) -> None:
        head, _, body = data.partition(b"\n\n")
        line, *rest = head.split(b"\n")
        method, _, path = line.decode("latin-1").partition(" ")
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (each.partition(b":") for each in rest)]
        sent = loop.run_until_complete(serve(method, path or "/", headers, body))
        statuses = [each["status"] for each in sent if each["type"] == "http.response.start"]
        if statuses and statuses[0] >= 500:
            raise AssertionError(f"HTTP {statuses[0]}: {sent}")

    host = b"host: 127.0.0.1:8000\ncontent-type: application/json\naccept: application/json, text/event-stream\n"
    client = {"name": "c", "version": "1"}
    hello = message("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    session = f"mcp-session-id: {new_session_id()}\nmcp-protocol-version: 2025-11-25\n".encode()
    seeds = (
        b"POST /mcp\n" + host + b"\n" + hello,
        b"POST /mcp\n" + host + session + b"\n" + message("tools/list"),
        b"POST /mcp\n" + host + b"mcp-protocol-version: 2026-07-28\nmcp-method: tools/list\n\n" + message("tools/list"),
        b"POST /rpc\n" + host + b"content-length: 99999999\n\n" + message("tool/list"),
        b"GET /mcp\n" + host + session + b"last-event-id: 4\n",
        b"DELETE /mcp\n" + host + session,
        b"GET /health\n" + host + b"origin: http://evil.example\nauthorization: Bearer x\n",
    )
    return Target(run, (), seeds, ("metaforge.mcp", "metaforge.access", "metaforge.protocol"))


def event_stream() -> Target:
    """What an adapter elsewhere answers, cut into pieces."""
    from metaforge.core.errors import MetaForgeError
    from metaforge.engine.connection import HttpConnection

    connection = HttpConnection("http://127.0.0.1:9", 1)

    class Response:
        status_code = 200

        def __init__(self, data: bytes) -> None:
            self.headers = {"content-type": "text/event-stream" if data[:1] == b"s" else "application/json"}
            self.data = data[1:]

        async def aiter_bytes(self) -> Any:
            size = 1 + len(self.data) % 17
            for start in range(0, len(self.data), size):
                yield self.data[start : start + size]

    def run(data: bytes) -> None:
        coroutine = connection._read(Response(data), lambda fraction, told: None)  # type: ignore[arg-type]
        try:
            coroutine.send(None)
        except StopIteration:
            return
        raise AssertionError("it waited")

    event = b'data: {"jsonrpc": "2.0", "method": "tool/result", "params": {"progress": 0.5, "message": "half"}}\n\n'
    answer = b'{"jsonrpc": "2.0", "id": 1, "result": {"data": {}}}'
    return Target(
        run, (MetaForgeError,), (b"s" + event + b"data: " + answer + b"\n\n", b"j" + answer), ("metaforge.engine",)
    )


def worker_output() -> Target:
    """What a worker writes, and the answers in it held to their shape."""
    from metaforge.core.errors import MetaForgeError
    from metaforge.engine import faults
    from metaforge.engine.answers import checked
    from metaforge.engine.lines import MessageReader
    from metaforge.tools.manifest import Tool

    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tool = Tool("a.b", "a", "B", "b", "c", {"type": "object"}, schema, runs_caller_code=True)
    folder = Path(tempfile.mkdtemp())

    def take(decoded: dict[str, Any]) -> None:
        if (error := decoded.get("error")) is not None:
            raise faults.rebuild(error)
        checked(tool, decoded.get("result"))

    def run(data: bytes) -> None:
        reader = MessageReader(512, take, lambda junk: None, lambda whole: None, lambda: folder / "spill")
        try:
            for start in range(0, len(data), 1 + len(data) % 31):
                reader.feed(data[start : start + 1 + len(data) % 31])
        finally:
            reader.close()

    seeds = (
        b'{"jsonrpc": "2.0", "id": 1, "result": {"data": {"text": "a"}, "files": [{"path": "a"}], "summary": "b"}}\n',
        b'half {"jsonrpc": "2.0", "id": 1, "result": {"data": {}}}\nbanner\n',
        b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "m", "data": {"kind": "disk_limit"}}}\n',
        b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * 600 + b'"}\n',
    )
    return Target(run, (MetaForgeError,), seeds, ("metaforge.engine",))


def deck() -> Target:
    from metaforge.formats.inp import BadDeck, read_cards
    from metaforge.formats.inp_model import read_model

    seed = b"""** a bar
*NODE, NSET=ALL
1, 0., 0., 0.
2, 1., 0., 0.
3, 0., 1., 0.
4, 0., 0., 1.
*ELEMENT, TYPE=C3D4, ELSET=EALL
1, 1, 2, 3, 4
*NSET, NSET=FIX, GENERATE
1, 3, 1
*SURFACE, NAME=S1, TYPE=ELEMENT
EALL, S1
*MATERIAL, NAME=STEEL
*ELASTIC
210000., 0.3
*DENSITY
7.8e-9
*SOLID SECTION, ELSET=EALL, MATERIAL=STEEL
*STEP
*STATIC
*BOUNDARY
FIX, 1, 3, 0.
*CLOAD
2, 3, -10.
*DLOAD
EALL, P1, 1.
*NODE FILE
U
*END STEP
"""
    return Target(text(lambda body: read_model(read_cards(body))), (BadDeck,), (seed,), ("metaforge.formats",))


def deck_output() -> Target:
    from metaforge.formats import dat

    def run(body: str) -> None:
        dat.read_frequencies(body)
        dat.read_buckling_factors(body)
        dat.read_effective_mass(body)

    seed = b"""
     E I G E N V A L U E   O U T P U T

 MODE NO    EIGENVALUE                       FREQUENCY
                                     REAL PART            IMAGINARY PART
                           (RAD/TIME)      (CYCLES/TIME     (RAD/TIME)

      1   0.1E+08   0.3162278E+04   0.5032921E+03   0.0000000E+00

     B U C K L I N G   F A C T O R   O U T P U T

      1   0.2E+01
"""
    return Target(text(run), (), (seed,), ("metaforge.formats",))


def results() -> Target:
    from metaforge.formats.frd import UnreadableResults, read_frd

    seed = b"""    1C
    1UUSER
    2C                             2                                     1
 -1         1 0.00000E+00 0.00000E+00 0.00000E+00
 -1         2 1.00000E+00 0.00000E+00 0.00000E+00
 -3
    1PSTEP                         1           1           1
  100CL  101 1.000000000           2                     0    1           1
 -4  DISP        4    1
 -5  D1          1    2    1    0
 -5  D2          1    2    2    0
 -5  D3          1    2    3    0
 -5  ALL         1    2    0    0    1ALL
 -1         1 0.00000E+00 0.00000E+00 0.00000E+00
 -1         2 1.00000E-03 0.00000E+00 0.00000E+00
 -3
 9999
"""
    return Target(read_frd, (UnreadableResults,), (seed,), ("metaforge.formats",))


def rawfile() -> Target:
    import struct

    from metaforge.formats import spice_raw

    head = (
        b"Title: rc\nDate: now\nPlotname: Transient Analysis\nFlags: real\nNo. Variables: 2\nNo. Points: 2\n"
        b"Variables:\n\t0\ttime\ttime\n\t1\tv(out)\tvoltage\n"
    )
    seeds = (
        head + b"Binary:\n" + struct.pack("<4d", 0.0, 0.0, 1e-3, 1.0),
        head + b"Values:\n 0\t0.0\n\t0.0\n 1\t1e-3\n\t1.0\n",
        head.replace(b"real", b"complex") + b"Binary:\n" + struct.pack("<8d", *range(8)),
    )
    return Target(spice_raw.read_raw, (spice_raw.UnreadableRaw,), seeds, ("metaforge.formats",))


def netlist() -> Target:
    from metaforge.adapters.spice import cards, circuit, lint, source
    from metaforge.core.errors import ToolError

    folder = Path(tempfile.mkdtemp())

    def run(data: bytes) -> None:
        body = cards.decode(data, "a.cir")
        read = source.read_netlist(body, "a.cir", folder, folder)
        found = circuit.read_circuit(read)
        lint.title_warning(read, found)
        lint.number_warnings(read)
        lint.island_warnings(found, "op")
        lint.loop_warnings(found, "op")

    seed = b"""divider
V1 in 0 DC 1 PULSE(0 5 0 1n 1n 1u 2u)
R1 in out 1k
C1 out 0 {c}
.param c=1u
.subckt amp a b
E1 b 0 a 0 10
.ends
X1 out x amp
.model d1 d (is=1e-14)
D1 x 0 d1
.tran 1u 1m
.end
"""
    return Target(run, (ToolError,), (seed,), ("metaforge.adapters.spice",))


def step_file() -> Target:
    from metaforge.core.errors import ToolError
    from metaforge.formats import step_colours, step_placement
    from metaforge.formats.step_header import read_step_header

    def run(data: bytes) -> None:
        read_step_header(data, "a.step")
        body = data.decode("latin-1")
        step_placement.has_placement(body)
        step_colours.read_colours(body)

    seed = b"""ISO-10303-21;
HEADER;
FILE_DESCRIPTION(('a'),'2;1');
FILE_NAME('a','2024-01-01',(''),(''),'','','');
FILE_SCHEMA(('AUTOMOTIVE_DESIGN { 1 0 10303 214 1 1 1 1 }'));
ENDSEC;
DATA;
#1=PRODUCT('p','p','',(#2));
#2=(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.MILLI.,.METRE.));
#3=COLOUR_RGB('red',1.,0.,0.);
#4=MANIFOLD_SOLID_BREP('s',#5);
#6=STYLED_ITEM('',(#7),#4);
#7=PRESENTATION_STYLE_ASSIGNMENT((#8));
#9=NEXT_ASSEMBLY_USAGE_OCCURRENCE('1','n','d',#10,#11,$);
ENDSEC;
END-ISO-10303-21;
"""
    return Target(run, (ToolError,), (seed,), ("metaforge.formats",))


def mesh_of_triangles() -> Target:
    import struct

    from metaforge.core.errors import ToolError
    from metaforge.formats.stl import read_stl

    ascii_seed = (
        b"solid a\nfacet normal 0 0 1\nouter loop\n" + b"vertex 0 0 0\n" * 3 + b"endloop\nendfacet\nendsolid a\n"
    )
    binary_seed = bytes(80) + struct.pack("<I", 1) + struct.pack("<12fH", *range(12), 0)
    return Target(lambda data: read_stl(data, "a.stl"), (ToolError,), (ascii_seed, binary_seed), ("metaforge.formats",))


def kicad_reports() -> Target:
    from metaforge.formats import kicad_project, kicad_report

    def run(body: str) -> None:
        for read in (kicad_report.read_erc, kicad_report.read_drc, kicad_project.read_project):
            try:
                read(body)
            except (kicad_report.UnreadableReport, kicad_project.UnreadableProject):
                continue

    item = {"description": "Pin 1", "pos": {"x": 1.0, "y": 2.0}, "uuid": "u"}
    violation = {"type": "t", "severity": "error", "description": "d", "items": [item]}
    erc = {"kicad_version": "9.0.2", "sheets": [{"path": "/", "uuid_path": "/u", "violations": [violation]}]}
    drc = {"kicad_version": "9.0.2", "violations": [violation], "unconnected_items": [], "schematic_parity": []}
    project = {"board": {"design_settings": {"rules": {"min_clearance": 0.2}}}, "net_settings": {"classes": [{}]}}
    seeds = tuple(json.dumps(each).encode() for each in (erc, drc, project))
    return Target(text(run), (), seeds, ("metaforge.formats",))


def kicad_files() -> Target:
    from metaforge.formats import (
        kicad_board,
        kicad_netlist,
        kicad_rules,
        kicad_schematic,
        kicad_sexpr,
        specctra,
    )

    readers: tuple[Callable[[str], object], ...] = (
        kicad_sexpr.parse_all, kicad_board.read_board, kicad_netlist.read_netlist, kicad_schematic.read_schematic,
        kicad_rules.read_rules, specctra.simplified, lambda body: specctra.read_session(body, body),
    )  # fmt: skip
    answers = (
        kicad_sexpr.BadExpression, kicad_board.NotABoard, kicad_netlist.NotANetlist, kicad_schematic.NotASchematic,
        specctra.NotSpecctra,
    )  # fmt: skip

    def run(body: str) -> None:
        for read in readers:
            try:
                read(body)
            except answers:
                continue

    seeds = (
        b'(kicad_pcb (version 20240108) (general (thickness 1.6)) (layers (0 "F.Cu" signal)) (net 0 "") (net 1 "A")'
        b'(footprint "R" (layer "F.Cu") (at 1 2 90) (property "Reference" "R1") (pad "1" smd rect (at 0 0) (size 1 1)'
        b'(layers "F.Cu") (net 1 "A"))) (segment (start 0 0) (end 1 1) (width 0.2) (layer "F.Cu") (net 1))'
        b'(gr_line (start 0 0) (end 9 0) (layer "Edge.Cuts")) (via (at 1 1) (size 0.6) (drill 0.3) (net 1)))',
        b'(kicad_sch (version 20231120) (lib_symbols (symbol "R" (pin passive line (at 0 0 0) (name "1"))))'
        b'(symbol (lib_id "R") (at 1 2 0) (property "Reference" "R1" (at 0 0 0))) (wire (pts (xy 0 0) (xy 1 1))))',
        b'(export (version "E") (components (comp (ref "R1") (value "1k"))) (nets (net (code "1") (name "A")'
        b'(node (ref "R1") (pin "1")))))',
        b"(version 1)\n(rule \"a\" (condition \"A.NetClass == 'HV' && B.Type == 'via'\")"
        + b"(constraint clearance (min 1mm)))",
        b"(pcb x (resolution um 10) (structure (layer F.Cu) (boundary (path pcb 0 0 0 1 1)) (rule (width 250)))"
        b"(placement (component R (place R1 1 2 front 0))) (routes (resolution um 10) (network_out)))",
    )
    return Target(text(run), (), seeds, ("metaforge.formats",))


def arguments() -> Target:
    """What a client sends as arguments, held to schemas and paths, and told what is wrong."""
    from metaforge.calls.arguments import ArgumentJudge
    from metaforge.calls.paths import PathJudge
    from metaforge.core.errors import MetaForgeError
    from metaforge.tools.manifest import Tool

    schema = {
        "type": "object", "additionalProperties": False, "required": ["path"],
        "properties": {
            "path": {"type": "string", "format": "input-path"}, "kind": {"enum": ["box", "cylinder"]},
            "count": {"type": "integer", "minimum": 1}, "deep": {"type": "array", "items": {"type": "number"}},
        },
    }  # fmt: skip
    tool = Tool("a.b", "a", "B", "b", "c", schema, {})
    judge, paths = ArgumentJudge(), PathJudge(Path(tempfile.mkdtemp()))

    def run(data: bytes) -> None:
        import orjson

        try:
            given = orjson.loads(data)
        except orjson.JSONDecodeError:
            return
        if isinstance(given, dict):
            paths.judge(tool, judge.judge(tool, given))

    seeds = (b'{"path": "a.step", "kind": "box", "count": 2, "deep": [1.5]}', b'{"path": "../../etc/passwd", "kin": 1}')
    return Target(run, (MetaForgeError,), seeds, ("metaforge.calls",))


def schemas() -> Target:
    """A manifest of somebody else's adapter, mended or refused."""
    from metaforge.registry.lint import fault_of, inner_fault_of, mended
    from metaforge.tools.manifest import AdapterManifest

    def run(data: bytes) -> None:
        import orjson

        try:
            raw = orjson.loads(data)
        except orjson.JSONDecodeError:
            return
        manifest = AdapterManifest.from_json({"adapter_id": "a", "version": "1", "tools": [raw]})
        for tool in manifest.tools:
            better, _ = mended(tool)
            if not fault_of(better):
                inner_fault_of(better)

    seed = {
        "tool_id": "a.b", "adapter_id": "a", "name": "n", "description": "d", "effect": "read",
        "input_schema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"minimum": 1}}},
        "output_schema": {"type": "object"}, "needs": [{"kind": "program", "name": "x"}],
        "resource_limits": {"max_memory_mb": 1},
    }  # fmt: skip
    return Target(run, (), (json.dumps(seed).encode(),), ("metaforge.registry", "metaforge.tools.manifest"))


def documents_of_text() -> Target:
    """Documents that are text, of every kind that is read: recognised, decoded, cut into passages."""
    from metaforge.core.errors import ToolError
    from metaforge.knowledge.parsing import parse
    from metaforge.knowledge.recognition import HEAD_BYTES, recognise

    kinds = ("a.md", "a.txt", "a.csv", "a.html", "a.kicad_pro")

    def run(data: bytes) -> None:
        name = kinds[data[0] % len(kinds)] if data else "a.md"
        body = data[1:]
        kind = recognise(body[:HEAD_BYTES], name)
        if kind not in ("pdf", "docx"):
            for passage in parse(body, kind, name).passages:
                assert passage.text.strip()

    seeds = (
        b"\0---\na: b\n---\n# A\n\n1. b\n\n   - c\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nd\n```\n<p>e</p>\n",
        b"\1A TITLE\n\n1.2 Limits\n\nIt is 5 V. See Fig. 3.\n\nTitle\n=====\nEnd\n",
        b'\2Parts;;\na;b;c\n1;"x\ny";3\n',
        b"\3<h1>a</h1><p>b<table><tr><th colspan=2>c<tr><td rowspan=3>d<td>e</table><ul><li>f<pre>g</pre>",
        b'\4{"board": {"design_settings": {"rules": {"min_clearance": 0.2}}}}',
        b"\1\xff\xfea\0b\0", b"\1It bears 85 \xb0C.\n\xc2\xb5m\n",
        b'\0(kicad_sch (title_block (title "a")) (symbol (property "Reference" "R1") (property "Value" "1k")))',
    )  # fmt: skip
    return Target(run, (ToolError,), seeds, ("metaforge.knowledge",))


def documents_of_word() -> Target:
    """The text part of a DOCX, whole and inside its archive."""
    import io
    import zipfile

    import docx

    from metaforge.core.errors import ToolError
    from metaforge.knowledge.readers.docx import TEXT_PART, read_docx

    empty = io.BytesIO()
    docx.Document().save(empty)
    with zipfile.ZipFile(empty) as whole:
        others = {name: whole.read(name) for name in whole.namelist() if name != TEXT_PART}

    def run(data: bytes) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as made:
            for name, content in others.items():
                made.writestr(name, content)
            made.writestr(TEXT_PART, data[1:])
        # Every fourth as it is: then it is the archive that is broken.
        list(read_docx(packed.getvalue() if not data or data[0] % 4 else data[1:], "a.docx"))

    names = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    cells = b"<w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc></w:tr>"
    body = b"<w:p><w:pPr><w:pStyle w:val='Heading1'/></w:pPr><w:r><w:t>b</w:t></w:r></w:p><w:tbl>" + cells * 2
    seeds = (
        b"1<w:document " + names + b"><w:body>" + body + b"</w:tbl></w:body></w:document>",
        b"0PK\x03\x04" + bytes(40),
    )  # fmt: skip
    return Target(run, (ToolError, MemoryError), seeds, ("metaforge.knowledge.readers.docx",))


TARGETS: dict[str, Callable[[], Target]] = {
    "json-rpc": json_rpc, "http": http_requests, "sse": event_stream, "worker-output": worker_output,
    "deck": deck, "deck-output": deck_output, "results": results, "rawfile": rawfile, "netlist": netlist,
    "step": step_file, "stl": mesh_of_triangles, "kicad-reports": kicad_reports, "kicad-files": kicad_files,
    "arguments": arguments, "schemas": schemas, "documents": documents_of_text, "documents-docx": documents_of_word,
}  # fmt: skip

assert all(re.fullmatch(r"[a-z-]+", name) for name in TARGETS)
