"""Read a netlist: includes put in, dangers refused.

ngspice runs whatever a netlist tells it: shell commands in `.control` blocks, files it names, programs that a code
model starts. So it never reads the caller's netlist. It gets a deck that is written anew from the cards kept here:
elements and the directives on a list of known ones, complete in itself, naming no other file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from metaforge.adapters.spice.cards import BadNetlist, Card, cards_of, decode
from metaforge.core.errors import FailureMode
from metaforge.tools.paths import find_below

MAX_NETLIST_BYTES = 32_000_000
MAX_DEPTH = 20
MAX_FILES = 500

KEPT = frozenset({
    ".model", ".subckt", ".ends", ".param", ".func", ".global", ".ic", ".nodeset", ".options", ".option", ".opt",
    ".temp", ".if", ".elseif", ".else", ".endif", ".csparam",
})  # fmt: skip
"""Directives that describe the circuit: they reach ngspice as they are."""
ANALYSES = frozenset({".op", ".dc", ".ac", ".tran", ".noise", ".pz", ".tf"})
IGNORED = frozenset({".backanno"})
"""What other simulators write for themselves."""
OTHER_ANALYSES = frozenset({".sens", ".disto", ".sp", ".pss", ".hb", ".four", ".fft"})
OUTPUTS = frozenset({".print", ".plot", ".save", ".probe", ".meas", ".measure", ".width"})
_INCLUDES = frozenset({".include", ".inc", ".incl"})
_RUNS = frozenset({".control", ".exec", ".shell", ".system", ".source", ".csh"})
_WRITES = frozenset({".write", ".wrdata", ".savebias", ".wave", ".snapshot", ".echo", ".spool"})
_LOADS = frozenset({".pre_osdi", ".osdi", ".codemodel", ".use", ".hdl", ".verilog", ".loadbias", ".load", ".data"})

_FILE_MODELS = re.compile(
    r"\b(d_process|d_cosim|filesource|d_source|d_state|d_ram_file|table2d|table3d|file_source)\b", re.IGNORECASE
)
_FILE_WORDS = re.compile(
    r"\b((?:\w+_)?file(?:name)?|wavefile|pwlfile)"
    r"\s*=\s*(\S+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Netlist:
    """A netlist as it is simulated.

    Attributes:
        name: of its file, or `netlist`.
        title: its first line.
        cards: what describes the circuit, includes in place.
        analyses: its own analysis cards.
        outputs: `.print`, `.save`, `.meas` and the like.
        included: files that were put in, relative to the workspace.
        dropped: directives that were left out, each with why.
    """

    name: str
    title: str
    cards: tuple[Card, ...]
    analyses: tuple[Card, ...] = ()
    outputs: tuple[Card, ...] = ()
    included: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    title_line: str = field(default="", repr=False)


def read_netlist(text: str, name: str, folder: Path, workspace: Path) -> Netlist:
    """Read a netlist.

    Args:
        text: the netlist.
        name: what to call it in messages.
        folder: where includes are looked for.
        workspace: its root; includes must lie inside it.

    Raises:
        BadNetlist: it is damaged, reads files it may not, or asks for more than a simulation; the line is named.
    """
    if len(text) > MAX_NETLIST_BYTES:
        raise BadNetlist(f"{name} is larger than {MAX_NETLIST_BYTES / 1e6:.0f} MB", fix="leave out what is not used")
    if not text.strip():
        raise BadNetlist(f"{name} is empty", fix="give a title line, elements such as `R1 in out 1k`, and .end")
    title, _, rest = text.lstrip("\ufeff").partition("\n")
    reader = _Reader(workspace.resolve())
    kept: list[Card] = []
    analyses: list[Card] = []
    outputs: list[Card] = []
    dropped: list[str] = []
    for card in _until_end(reader.expand(cards_of(rest, first_line=2), folder, 0), dropped):
        word = card.directive
        if word in ANALYSES:
            analyses.append(card)
        elif word in OUTPUTS:
            outputs.append(card)
        elif word in OTHER_ANALYSES:
            dropped.append(f"{word} is not run here ({card.where()})")
        elif word in IGNORED:
            continue
        elif word == ".title":
            title = card.text.partition(" ")[2] or title
        else:
            _refuse_dangers(card)
            kept.append(card)
    shown = title.strip()
    if shown.lower().startswith(".title"):
        shown = shown[6:].strip()
    return Netlist(
        name, shown.lstrip("*").strip(), tuple(kept), tuple(analyses), tuple(outputs), tuple(reader.included),
        tuple(dropped), title.strip(),
    )  # fmt: skip


def _until_end(cards: Iterator[Card], dropped: list[str]) -> Iterator[Card]:
    ended = False
    for card in cards:
        if ended:
            if card.directive not in ANALYSES | OTHER_ANALYSES | OUTPUTS:
                _refuse_dangers(card)
            told = "what stands below .end is not simulated"
            if not dropped or not dropped[-1].startswith(told):
                dropped.append(f"{told} ({card.where()})")
            continue
        if card.directive == ".end":
            # An included file's own .end only ends that file, which the reader sees to.
            ended = True
            continue
        yield card


def _refuse_dangers(card: Card) -> None:
    word = card.directive
    if word in _RUNS or word == ".endc":
        raise BadNetlist(
            f"{word} runs commands: they can start programs and write files, so nothing was simulated",
            kind="control_block",
            where=card.where(),
            fix="remove everything from .control to .endc; choose analysis_type, params and probes instead, and read "
            "measurements from the answer",
        )
    if word in _WRITES or word in _LOADS:
        does = "writes files" if word in _WRITES else "loads files or programs"
        raise BadNetlist(
            f"{word} {does}, which a netlist may not do here; nothing was simulated",
            kind="netlist_touches_files",
            where=card.where(),
            fix="remove it; the answer's files hold the waveforms",
        )
    if word and word not in KEPT:
        raise BadNetlist(
            f"{word} is not a directive that is simulated here",
            kind="unknown_directive",
            where=card.where(),
            fix="ngspice knows .model .subckt .param .func .global .ic .nodeset .options .temp .include .lib; sweeps "
            "such as LTspice's .step are separate calls with another value each",
        )
    if "`" in card.text:
        raise BadNetlist("A netlist line may not hold backquotes: they run commands", kind="control_block",
                         where=card.where(), fix="remove them")  # fmt: skip
    model = _FILE_MODELS.search(card.text) if word == ".model" else None
    named = _FILE_WORDS.search(card.text)
    if model or named:
        what = model[1] if model else f"{named[1]}={named[2]}" if named else ""
        raise BadNetlist(
            f"{what} makes the simulator open a file or start a program, which a netlist may not do here; nothing was "
            "simulated",
            kind="netlist_touches_files",
            where=card.where(),
            fix="put the values into the netlist, for instance as a PWL source or a table",
        )


class _Reader:
    """Puts included files in place of the cards that name them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.included: list[str] = []

    def expand(self, cards: list[Card], folder: Path, depth: int) -> Iterator[Card]:
        control: Card | None = None
        for card in cards:
            word = card.directive
            if word == ".control":
                control = card
            if control is None and (word in _INCLUDES or (word == ".lib" and self._is_file(card, folder))):
                yield from self._include(card, folder, depth)
            elif depth and word == ".end":
                return
            elif control is None and word == ".lib" and not depth:
                self._target(_arguments(card)[0], folder, card)
            elif control is None and word in (".lib", ".endl"):
                # Sections of a library that is included as a whole: their content counts, their marks do not.
                continue
            else:
                yield card

    def _is_file(self, card: Card, folder: Path) -> bool:
        """Whether `.lib` names a file rather than starting a section."""
        arguments = _arguments(card)
        if len(arguments) != 1:
            return True
        name = arguments[0]
        return bool(re.search(r"[/.\\~]", name)) or find_below(self.root, folder / name)[1]

    def _include(self, card: Card, folder: Path, depth: int) -> Iterator[Card]:
        arguments = _arguments(card)
        if not arguments:
            raise BadNetlist(f"{card.directive} names no file", where=card.where(), fix="name the file, in quotes")
        path = self._target(arguments[0], folder, card)
        if depth >= MAX_DEPTH or len(self.included) >= MAX_FILES:
            raise BadNetlist(
                f"{arguments[0]} is included more than {MAX_DEPTH} deep: does a file include itself?"
                if depth >= MAX_DEPTH
                else f"More than {MAX_FILES} files are included",
                kind="include_loop", where=card.where(), fix="include each file once",
            )  # fmt: skip
        inside = path.relative_to(self.root).as_posix()
        if path.stat().st_size > MAX_NETLIST_BYTES:
            raise BadNetlist(f"{inside} is larger than {MAX_NETLIST_BYTES / 1e6:.0f} MB", where=card.where())
        self.included.append(inside)
        cards = cards_of(decode(path.read_bytes(), inside), inside)
        if card.directive == ".lib" and len(arguments) > 1:
            cards = _section(cards, arguments[1], inside, card)
        yield from self.expand(cards, path.parent, depth + 1)

    def _target(self, name: str, folder: Path, card: Card) -> Path:
        inside = name.removeprefix("/workspace/")
        target, is_file = find_below(self.root, self.root / inside if inside != name else folder / name)
        if target is None or name.startswith("~") or "$" in name:
            raise BadNetlist(
                f"{card.directive} names {name!r}, which lies outside the workspace; nothing was read or simulated",
                kind="path_outside_workspace",
                where=card.where(),
                fix="copy the file into the workspace and name it by a relative path",
            )
        if not is_file:
            raise BadNetlist(
                f"{card.directive} names {name!r}, which does not exist",
                kind="missing_include",
                where=card.where(),
                fix="put the file beside the netlist, or correct its name",
                failure_mode=FailureMode.INPUT,
            )
        return target


def _arguments(card: Card) -> list[str]:
    rest = card.text.split(None, 1)[1] if " " in card.text or "\t" in card.text else ""
    found = re.findall(r"\"([^\"]*)\"|'([^']*)'|(\S+)", rest)
    return [next(filter(None, each), "") for each in found]


def _section(cards: list[Card], name: str, file: str, card: Card) -> list[Card]:
    """Return the cards between `.lib NAME` and `.endl`."""
    found: list[Card] = []
    sections: list[str] = []
    inside = False
    for each in cards:
        arguments = _arguments(each) if each.directive == ".lib" else []
        if len(arguments) == 1 and not inside:
            sections.append(arguments[0])
            inside = arguments[0].lower() == name.lower()
        elif each.directive == ".endl":
            if inside:
                return found
        elif inside:
            found.append(each)
    if name.lower() in (each.lower() for each in sections):
        return found
    raise BadNetlist(
        f"{file} has no section {name!r}",
        kind="missing_section",
        where=card.where(),
        fix=f"its sections are: {', '.join(sections[:12]) or 'none'}",
    )
