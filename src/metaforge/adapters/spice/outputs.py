"""Where a simulation's files go, and what is written there."""

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from metaforge.tools.context import OutputFile, ToolContext
from metaforge.tools.results import settled


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
        path = settled(
            self.raw, self.deck, deck, ctx, is_ours=self.is_default, may_replace=self.overwrite,
            told="another simulation; nothing was simulated",
        )  # fmt: skip
        return replace(self, raw=path)

    def write(self, ctx: ToolContext, raw: bytes, deck: str) -> list[OutputFile]:
        """Write waveforms and deck, and return them for the answer."""
        ctx.output_file(str(self.raw)).write_bytes(raw)
        ctx.output_file(str(self.deck)).write_text(deck, encoding="utf-8")
        return [
            OutputFile(self.raw, "application/x-spice-raw", "waveforms"),
            OutputFile(self.deck, "text/x-spice-netlist", "deck"),
        ]
