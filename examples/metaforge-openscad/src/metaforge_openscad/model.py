"""A model's text: which files it reads and which parameters it has, known before OpenSCAD starts."""

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

from metaforge.core.errors import ToolError
from metaforge.tools.context import ToolContext

LIBRARIES = Path("/usr/share/openscad/libraries")
"""What Debian's packages install for everybody, such as MCAD."""
SPECIAL = ("$fn", "$fa", "$fs")

_TOKEN = re.compile(
    r'(?<![\w$])(?P<how>use|include)\s*<(?P<name>[^>]*)>|"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL
)
_GROUP = re.compile(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}")
_ASSIGNED = re.compile(r"(?:^|;)\s*([A-Za-z_]\w*)\s*=(?!=)")
_READS_DXF = re.compile(r"(?<![\w$])dxf_(?:dim|cross)\b")


@dataclass
class Model:
    """A model and the files that it is made of.

    Attributes:
        path: of the main file.
        name: what to call it in messages; empty for a text, whose lines speak for themselves.
        workspace: what it may read.
        parameters: names assigned at the top level.
    """

    path: Path
    name: str
    workspace: Path
    parameters: set[str] = field(default_factory=set)
    _seen: set[Path] = field(default_factory=set)

    @classmethod
    def open(cls, source: str | None, file_path: str | None, ctx: ToolContext) -> "Model":
        """Take the text or the file and look through everything that it includes.

        Raises:
            ToolError: neither or both are given, or it reads a file that it may not read or that is not there.
        """
        if (source is None) == (file_path is None):
            raise ToolError("Give either source or file_path", kind="one_model_needed", fix="leave one of them out")
        path = ctx.input_file(file_path or "") if source is None else _lay_out(source, ctx)
        model = cls(path.resolve(), file_path or "", ctx.workspace.resolve())
        model._look_through(model.path, is_own=True)
        return model

    def _look_through(self, path: Path, *, is_own: bool) -> None:
        if path in self._seen or path.suffix.lower() in (".ttf", ".otf"):
            return
        self._seen.add(path)
        text = path.read_text(encoding="utf-8", errors="replace")
        code = _TOKEN.sub(lambda token: re.sub(r"[^\n]", " ", token[0]), text)
        if match := _READS_DXF.search(code):
            raise ToolError(
                f"{match[0]}() reads a file while the model is evaluated, which is not supported",
                kind="reads_file", where=self.place(path, code.count("\n", 0, match.start()) + 1),
                fix="pass the dimension as a parameter",
            )  # fmt: skip
        if is_own:
            self.parameters |= _assigned(code)
        for token in _TOKEN.finditer(text):
            if token["how"]:
                where = self.place(path, text.count("\n", 0, token.start()) + 1)
                found = self.find(token["name"], path.parent, where)
                # What `use` brings keeps its own variables; what `include` brings becomes part of the model.
                self._look_through(found, is_own=is_own and token["how"] == "include")

    def find(self, name: str, folder: Path, where: str) -> Path:
        """Return the file that OpenSCAD would open.

        Args:
            name: as written in the model.
            folder: of the file that names it.
            where: the line, for the message.

        Raises:
            ToolError: it lies outside the workspace, or is not there.
        """
        candidates = [(base / name).resolve() for base in (folder, self.workspace, LIBRARIES)]
        found = next((path for path in candidates if path.is_file()), candidates[0])
        if not self.may_read(found):
            raise ToolError(
                f"The model reads {name}, which is outside the workspace; nothing was rendered",
                kind="outside_workspace", where=where, fix="copy the file into the workspace and name it from there",
            )  # fmt: skip
        if not found.is_file():
            inside = found.relative_to(self.workspace) if found.is_relative_to(self.workspace) else name
            library = "install it (apt-get install -y openscad-mcad), or " if name.startswith("MCAD/") else ""
            raise ToolError(
                f"The model reads {inside}, which is not there; nothing was rendered", kind="file_missing", where=where,
                fix=f"{library}name it relative to the model's own folder or to the workspace",
            )  # fmt: skip
        return found

    def may_read(self, path: Path) -> bool:
        """Whether a file lies in the workspace, among the installed libraries, or where the text was laid out."""
        own = () if self.name else (self.path.parent,)
        return any(path.is_relative_to(base) for base in (self.workspace, LIBRARIES, *own))

    def place(self, path: Path, line: int) -> str:
        """Return how a person finds a line: file, number and text."""
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
        # What is missing at the end of a line, or of the file, is noticed below it.
        line = next((number for number in range(min(line, len(lines)), 0, -1) if lines[number - 1].strip()), line)
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        is_text = not self.name and path == self.path
        name = path.relative_to(self.workspace) if path.is_relative_to(self.workspace) else path.name
        return (f"line {line}" if is_text else f"{name}, line {line}") + (f": {text[:120]}" if text else "")

    def refuse_outside_imports(self, tree: str) -> None:
        """Look at every file that an evaluated model would import.

        `import` and `surface` may compute their names: only the evaluated tree says what will be opened.

        Raises:
            ToolError: one of them may not be read or is not there.
        """
        # Looked for at every place, one inside another too: the tree quotes the texts of text() as they are.
        for match in re.finditer(r'\((?=file = "((?:[^"\\]|\\.)*)")', tree):
            name = re.sub(r"\\(.)", r"\1", match[1])
            self.find(name, self.path.parent, self._line_that_imports(name))

    def refuse_outside_reads(self, dependencies: str) -> None:
        """Look at every file that was opened, as OpenSCAD's rule for make lists them.

        Raises:
            ToolError: one lies outside: a name computed at random differs from run to run.
        """
        for word in re.findall(r"(?:\\.|[^\s\\])+", dependencies.partition(":")[2]):
            name = re.sub(r"\\(.)", r"\1", word)
            if not self.may_read((self.path.parent / name).resolve()):
                raise ToolError(f"The model read {name}, which is outside the workspace", kind="outside_workspace")

    def _line_that_imports(self, name: str) -> str:
        """Return the line that names the file, or the first import where the name is computed."""
        for path in self._seen:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            numbers = [n for n, line in enumerate(lines, 1) if re.search(r"\b(import|surface)\b", line)]
            for number in [n for n in numbers if Path(name).name in lines[n - 1]] or numbers:
                return self.place(path, number)
        return f"import of {name}"

    def definitions(self, values: dict[str, object]) -> list[str]:
        """Return parameters as OpenSCAD's command line takes them.

        Raises:
            ToolError: the model has no such variable; OpenSCAD would ignore it without a word.
        """
        for name in values:
            if name not in self.parameters and name not in SPECIAL:
                near = difflib.get_close_matches(name, self.parameters, 1)
                there = ", ".join(sorted(self.parameters)[:20]) or "none"
                raise ToolError(
                    f"The model has no parameter {name}", kind="unknown_parameter", where=f"parameters.{name}",
                    fix=(f"did you mean {near[0]}? " if near else "") + f"it assigns: {there}",
                )  # fmt: skip
        return [word for name, value in values.items() for word in ("-D", f"{name}={_literal(value)}")]


def _lay_out(source: str, ctx: ToolContext) -> Path:
    """Write a text where names relative to the workspace mean the same as in a file at its root."""
    folder = ctx.scratch / "text"
    folder.mkdir()
    for entry in ctx.workspace.iterdir():
        (folder / entry.name).symlink_to(entry)
    path = folder / ".source.scad"
    path.write_text(source, encoding="utf-8")
    return path


def _assigned(code: str) -> set[str]:
    """Return the variables assigned outside every bracket."""
    before = ""
    while before != code:
        before, code = code, _GROUP.sub(";", code)
    return set(_ASSIGNED.findall(code))


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # Nothing of a value may end the string and go on as code.
        return '"' + re.sub(r'[\x00-\x1f"\\]', lambda found: f"\\x{ord(found[0]):02x}", value) + '"'
    return f"[{', '.join(map(repr, value))}]" if isinstance(value, list) else repr(value)
