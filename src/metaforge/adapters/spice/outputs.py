"""Where a simulation's files go, and what is written there."""

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from metaforge.core.errors import ToolError
from metaforge.tools.context import OutputFile, ToolContext


@dataclass(frozen=True)
class Outputs:
    """Paths relative to the workspace.

    Attributes:
        raw: the waveforms.
        is_default: whether the caller left the name to us.
        overwrite: whether existing files may be replaced.
    """

    raw: PurePosixPath
    is_default: bool = False
    overwrite: bool = False

    @property
    def deck(self) -> PurePosixPath:
        return self.raw.with_suffix(".cir")

    @property
    def picture(self) -> PurePosixPath:
        return self.raw.with_suffix(".png")

    @classmethod
    def choose(cls, output_path: str | None, name: str, analysis: str, *, overwrite: bool) -> "Outputs":
        """Take the caller's path, or `spice/<netlist>-<analysis>.raw`."""
        if output_path:
            path = PurePosixPath(output_path)
            return cls(path if path.suffix.lower() == ".raw" else path.with_name(path.name + ".raw"), False, overwrite)
        slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", PurePosixPath(name).stem).strip("-.")[:60] or "netlist"
        return cls(PurePosixPath("spice") / f"{slug}-{analysis}.raw", True, overwrite)

    def settle(self, deck: str, ctx: ToolContext) -> "Outputs":
        """Look for another simulation's files at these paths before anything runs.

        Returns:
            These paths, or, where the name was ours to choose, paths with a digest of the deck in them.

        Raises:
            ToolError: the caller's path holds another simulation's files.
        """
        written = ctx.workspace / self.deck
        taken = written.exists() or (ctx.workspace / self.raw).exists()
        if self.overwrite or ctx.overwrite or not taken:
            return self
        if written.is_file() and written.read_bytes() == deck.encode():
            return self
        if self.is_default:
            digest = hashlib.sha256(deck.encode()).hexdigest()[:8]
            return replace(self, raw=self.raw.with_name(f"{self.raw.stem}-{digest}.raw"))
        raise ToolError(
            f"{self.raw} (or {self.deck.name} beside it) holds another simulation; nothing was simulated",
            kind="output_exists",
            where=str(self.raw),
            fix="choose another output_path, or pass overwrite: true to replace it",
        )

    def write(self, ctx: ToolContext, raw: bytes, deck: str) -> list[OutputFile]:
        """Write waveforms and deck, and return them for the answer."""
        ctx.output_file(str(self.raw)).write_bytes(raw)
        ctx.output_file(str(self.deck)).write_text(deck, encoding="utf-8")
        return [
            OutputFile(self.raw, "application/x-spice-raw", "waveforms"),
            OutputFile(self.deck, "text/x-spice-netlist", "deck"),
        ]
