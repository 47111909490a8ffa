"""Make text of bytes: what a byte order mark says, else UTF-8, else what the bytes look like."""

import codecs
import re

from metaforge.core.errors import FailureMode, ToolError
from metaforge.knowledge.refusals import not_text

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
CANDIDATES = (
    "cp1252", "cp932", "gb18030", "big5", "euc_kr", "euc_jp", "cp1251", "koi8_r", "cp1253",
)  # fmt: skip
"""What text may be in that is mostly not ASCII and not Unicode."""
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROL_BYTES = re.compile(_CONTROL.pattern.encode())
_CONTROL_RATIO = 0.005
_FOREIGN_RATIO = 0.25
_SAMPLE_BYTES = 64 << 10


def decode(data: bytes, name: str) -> str:
    r"""Return a file's text with `\n` line ends.

    Raises:
        ToolError: it is no text (`document_not_text`).
    """
    text = _decoded(data, name)
    controls = len(_CONTROL.findall(text))
    if controls > len(text) * _CONTROL_RATIO:
        raise not_text(data, name, controls)
    return _CONTROL.sub(" ", text).replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes, name: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if wide := _wide(data[:_SAMPLE_BYTES]):
        return data.decode(wide, "replace")
    controls = len(_CONTROL_BYTES.findall(data))
    if controls > len(data) * _CONTROL_RATIO:
        raise not_text(data, name, controls)
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    if _is_western(data):
        return "".join(map(_line, data.splitlines(keepends=True)))
    return _guessed(data, name)


def _wide(sample: bytes) -> str:
    """Return which UTF-16 a text without a mark is in: every other byte of ASCII is zero then."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if half and max(even, odd) > half * 0.4 and min(even, odd) < half * 0.02:
        return "utf-16-be" if even > odd else "utf-16-le"
    return ""


def _is_western(data: bytes) -> bool:
    """Whether most letters are ASCII: then a byte beyond is a degree sign, a micro sign or a letter with an accent."""
    sample = data[:_SAMPLE_BYTES]
    return sum(byte >= 0x80 for byte in sample) <= len(sample) * _FOREIGN_RATIO


def _line(data: bytes) -> str:
    """Decode one line by itself: files that several programs wrote hold lines of both kinds."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # The five bytes that this code page leaves open are what Latin-1 makes of them.
        return "".join(_byte(byte) for byte in data) if _has_open_bytes(data) else data.decode("cp1252")


def _has_open_bytes(data: bytes) -> bool:
    return any(byte in data for byte in (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d"))


def _byte(byte: int) -> str:
    return bytes((byte,)).decode("latin-1" if byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else "cp1252")


def _guessed(data: bytes, name: str) -> str:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        raise ToolError(
            f"{name} is text in an older encoding, and what tells them apart is not installed",
            kind="reader_missing", where=name, failure_mode=FailureMode.ENVIRONMENT,
            fix='save it as UTF-8, or pip install "metaforge[knowledge]"',
        ) from None  # fmt: skip
    best = from_bytes(data[:_SAMPLE_BYTES], cp_isolation=list(CANDIDATES)).best()
    if best is None:
        raise not_text(data, name, data.count(0))
    return data.decode(best.encoding, "replace")
