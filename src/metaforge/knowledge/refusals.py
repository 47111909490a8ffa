"""What is said of a document that cannot be read: what it is, which file, and what to do about it."""

from metaforge.core.errors import FailureMode, OverLimit, ToolError

_BEGINNINGS = (
    (b"\x89PNG", "a PNG picture"), (b"\xff\xd8\xff", "a JPEG picture"), (b"GIF8", "a GIF picture"),
    (b"II*\0", "a TIFF picture"), (b"MM\0*", "a TIFF picture"), (b"\x7fELF", "a Linux program"),
    (b"MZ", "a Windows program"), (b"\x1f\x8b", "a gzip archive"), (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"), (b"7z\xbc\xaf", "a 7-Zip archive"), (b"Rar!", "a RAR archive"),
    (b"SQLite format 3", "an SQLite database"), (b"glTF", "a GLB model"), (b"AC10", "a DWG drawing"),
    (b"RIFF", "a sound or picture"), (b"\0asm", "a WebAssembly program"),
)  # fmt: skip


def megabytes(size_bytes: int) -> str:
    """Return a size for people."""
    return f"{size_bytes / (1 << 20):.4g} MiB"


def not_text(data: bytes, name: str, controls_count: int) -> ToolError:
    """Say that a file is no text."""
    what = next((what for start, what in _BEGINNINGS if data.startswith(start)), "")
    seen = f"it is {what}" if what else f"{controls_count:,} of its {len(data):,} bytes are no letters"
    return ToolError(
        f"{name} is not text: {seen}",
        kind="document_not_text", where=name,
        fix="give Markdown, text, HTML, CSV, PDF, DOCX, STEP or a KiCad file; export it as one of them",
    )  # fmt: skip


def too_large(name: str, size_bytes: int, limit_bytes: int) -> ToolError:
    """Say that a file is over its size limit."""
    return OverLimit(
        f"{name} has {megabytes(size_bytes)}; the limit for its format is {megabytes(limit_bytes)}",
        kind="document_too_large", where=name, failure_mode=FailureMode.LIMIT,
        fix=f"split it into files of at most {megabytes(limit_bytes)}, or leave out what nobody will ask about",
    )  # fmt: skip


def empty(name: str, why: str, fix: str) -> ToolError:
    """Say that there is nothing to read in a file."""
    return ToolError(f"{name} holds no text: {why}", kind="document_empty", where=name, fix=fix)


def truncated(name: str, why: str) -> ToolError:
    """Say that a file ends too early."""
    return ToolError(
        f"{name} is cut short: {why}",
        kind="document_truncated", where=name, fix="copy or download it again; nothing of it was taken in",
    )  # fmt: skip


def damaged(name: str, what: str, why: str) -> ToolError:
    """Say that a file breaks the rules of its format."""
    return ToolError(
        f"{name} is no readable {what}: {' '.join(why.split())[:300]}",
        kind="document_damaged", where=name, fix=f"open it in a program of its own and save it again as {what}",
    )  # fmt: skip


def encrypted(name: str, what: str) -> ToolError:
    """Say that a file wants a password."""
    return ToolError(
        f"{name} is {what} that opens with a password only",
        kind="document_encrypted", where=name, fix="save a copy without the password and give that",
    )  # fmt: skip


def unsupported(name: str, what: str, fix: str) -> ToolError:
    """Say that there is no reader for a format."""
    return ToolError(f"{name} is {what}, which is not read here", kind="document_unsupported", where=name, fix=fix)
