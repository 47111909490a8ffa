"""What a document really is: by its first bytes, and by its name only where those leave it open."""

from pathlib import PurePosixPath

from metaforge.knowledge.refusals import damaged, encrypted, unsupported

BINARY = frozenset({"pdf", "docx", "step"})
"""Formats with the larger size limit."""
HEAD_BYTES = 4096
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BY_SUFFIX = {
    ".md": "markdown", ".markdown": "markdown", ".mkd": "markdown", ".mdx": "markdown", ".csv": "csv", ".tsv": "csv",
    ".html": "html", ".htm": "html", ".xhtml": "html", ".kicad_pro": "kicad_project", ".pdf": "pdf", ".docx": "docx",
    ".step": "step", ".stp": "step", ".p21": "step", ".kicad_sch": "kicad_sch", ".kicad_pcb": "kicad_pcb",
}  # fmt: skip
_HAS_BEGINNING = {
    "pdf": "PDF", "docx": "DOCX", "step": "STEP file", "kicad_sch": "KiCad schematic", "kicad_pcb": "KiCad board",
}  # fmt: skip
_OF_MEDIA = {
    "text/markdown": "markdown", "text/plain": "text", "text/html": "html", "text/csv": "csv",
    "text/tab-separated-values": "csv",
}  # fmt: skip


def recognise(head: bytes, name: str) -> str:
    """Return a format's name.

    Args:
        head: the first `HEAD_BYTES` of the file.
        name: the file's, with its suffix.

    Raises:
        ToolError: no reader, a password, or a name that promises another format.
    """
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        # Its reader looks into the archive.
        return "docx"
    if head.startswith(_OLE):
        return _refuse_ole(name)
    if start.startswith(b"ISO-10303-21"):
        return "step"
    for kind in ("kicad_sch", "kicad_pcb"):
        if start.startswith(b"(" + kind.encode()):
            return kind
    suffix = PurePosixPath(name.lower()).suffix
    by_name = _BY_SUFFIX.get(suffix, "text")
    if what := _HAS_BEGINNING.get(by_name):
        raise damaged(name, what, f"it begins with {head[:12]!r}" if head else "it is empty (0 bytes)")
    if start[:200].lower().startswith((b"<!doctype html", b"<html")):
        return "html"
    return by_name


def of_media(media: str) -> str:
    """Return the format of a media type; text where it is unknown."""
    return _OF_MEDIA.get(media.partition(";")[0].strip().lower(), "text")


def _refuse_ole(name: str) -> str:
    if name.lower().endswith(".docx"):
        raise encrypted(name, "a DOCX")
    raise unsupported(name, "in Microsoft's old binary format (DOC, XLS, PPT)", "save it as DOCX, CSV or PDF")
