"""Broken and hostile documents are refused in time, with what is wrong, in which file, and what to do."""

import io
import os
import random
import zipfile

import pytest

from metaforge.core.errors import OverLimit, ToolError
from metaforge.knowledge import limits, reading_elsewhere
from metaforge.knowledge.reading import passages_of_text, read_document

pytest.importorskip("pdfplumber", reason="the extra `knowledge` is not installed")
pytest.importorskip("reportlab")

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas


def refused(folder, name, data, kind):
    """Read a file that must be refused; return what is said of it."""
    path = folder / name
    path.write_bytes(data)
    with pytest.raises(ToolError) as found:
        read_document(path, name)
    assert found.value.kind == kind
    assert name in found.value.message
    assert found.value.fix
    return found.value.text()


def pdf(pages_count=1, encrypt=None, lines_count=1):
    out = io.BytesIO()
    canvas = Canvas(out, encrypt=encrypt)
    for number in range(pages_count):
        for line in range(lines_count):
            canvas.drawString(72, 700 - 14 * line, f"Page {number} speaks of the bolt M{number}.")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def archive(parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return out.getvalue()


def test_a_pdf_with_a_password(tmp_path):
    said = refused(tmp_path, "a.pdf", pdf(encrypt=StandardEncryption("secret")), "document_encrypted")
    assert "without the password" in said


def test_a_pdf_that_anybody_may_open_is_read_though_it_is_encrypted(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(encrypt=StandardEncryption("", ownerPassword="owner")))
    assert "bolt M0" in read_document(path, "a.pdf").passages[0].text


@pytest.mark.parametrize("kept_ratio", [0.2, 0.6, 0.98])
def test_a_pdf_that_is_cut_short(tmp_path, kept_ratio):
    whole = pdf(30)
    cut = whole[: int(len(whole) * kept_ratio)]
    assert f"{len(cut):,} bytes" in refused(tmp_path, "a.pdf", cut, "document_truncated")


def test_a_pdf_of_ten_thousand_pages(tmp_path):
    said = refused(tmp_path, "a.pdf", pdf(10_000), "document_too_many_pages")
    assert "10,000 pages; the limit is 2,000" in said
    assert "5 files" in said


def test_a_pdf_of_noise(tmp_path):
    refused(tmp_path, "a.pdf", b"%PDF-1.7\n" + random.Random(1).randbytes(50_000) + b"%%EOF", "document_damaged")


def test_a_pdf_of_pictures(tmp_path):
    out = io.BytesIO()
    canvas = Canvas(out)
    canvas.rect(10, 10, 50, 50)
    canvas.save()
    assert "1 page is a picture" in refused(tmp_path, "scan.pdf", out.getvalue(), "document_empty")


def test_a_text_called_pdf_and_an_empty_file(tmp_path):
    refused(tmp_path, "a.pdf", b"Just words.", "document_damaged")
    refused(tmp_path, "b.docx", b"", "document_damaged")
    assert "0 bytes" in refused(tmp_path, "c.md", b"", "document_empty")
    refused(tmp_path, "d.md", b" \n\n ", "document_empty")


def test_a_docx_that_unpacks_to_gigabytes(tmp_path):
    hidden = archive({"word/document.xml": b"<w>" + b" " * (300 << 20)})
    assert len(hidden) < 400_000
    said = refused(tmp_path, "a.docx", hidden, "document_unpacks_too_large")
    assert "unpacks to 300 MiB" in said


def test_a_docx_that_lies_about_what_it_unpacks_to(tmp_path):
    hidden = bytearray(archive({"word/document.xml": b"<w>" + b" " * (200 << 20)}))
    directory = hidden.rindex(b"PK\x01\x02")
    hidden[directory + 24 : directory + 28] = (1000).to_bytes(4, "little")
    refused(tmp_path, "a.docx", bytes(hidden), "document_damaged")


def test_a_docx_whose_entities_unfold_without_end(tmp_path):
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha" * 10}">' for n in range(12))
    text = f'<?xml version="1.0"?><!DOCTYPE w [{entities}]><w>&e11;</w>'
    content_types = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
    data = archive({"[Content_Types].xml": content_types, "word/document.xml": text})
    refused(tmp_path, "a.docx", data, "document_damaged")


def test_a_docx_that_is_cut_short_or_locked_or_of_another_program(tmp_path):
    whole = archive({"word/document.xml": b"<w/>" * 9000})
    refused(tmp_path, "a.docx", whole[:-60], "document_truncated")
    refused(tmp_path, "b.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "document_encrypted")
    assert "as CSV" in refused(tmp_path, "c.xlsx", archive({"xl/workbook.xml": b"<w/>"}), "document_unsupported")
    assert "unpack it" in refused(tmp_path, "d.zip", archive({"a.txt": b"a"}), "document_unsupported")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x89PNG\r\n\x1a\n" + random.Random(2).randbytes(9000), "a PNG picture"),
        (b"\x7fELF\x02\x01\x01" + bytes(900) + random.Random(3).randbytes(9000), "a Linux program"),
        (random.Random(4).randbytes(9000), "are no letters"),
    ],
)
def test_a_binary_called_markdown(tmp_path, data, what):
    assert what in refused(tmp_path, "board.md", data, "document_not_text")


def test_a_hundred_megabytes_of_one_line(tmp_path):
    path = tmp_path / "log.txt"
    with path.open("wb") as file:
        # A hole in the file: what is refused by its size is not read.
        file.truncate(100 << 20)
    with pytest.raises(OverLimit, match=r"log\.txt has 100 MiB; the limit for its format is 16 MiB") as found:
        read_document(path, "log.txt")
    assert found.value.kind == "document_too_large"


def test_one_line_within_the_limit_is_cut_into_passages(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("word " * 200_000)
    passages = read_document(path, "log.txt").passages
    assert sum(len(each.text.split()) for each in passages) == 200_000
    assert max(len(each.text) for each in passages) <= 800


def test_more_passages_than_anybody_asks_about(tmp_path, monkeypatch):
    monkeypatch.setattr("metaforge.knowledge.parsing.MAX_PASSAGES", 100)
    rows = "a,b\n" + "1,2\n" * 101
    said = refused(tmp_path, "a.csv", rows.encode(), "document_too_many_passages")
    assert "more than 100 passages" in said


def test_lines_in_several_encodings_are_each_read_in_their_own(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes("It bears 85 °C.\n".encode() + "It plays 5 µm.\n".encode("cp1252") + b"Its dash \x97 is one.\n")
    assert read_document(path, "log.txt").passages[0].text == "It bears 85 °C. It plays 5 µm. Its dash — is one."


def test_a_cell_without_an_end(tmp_path):
    said = refused(tmp_path, "a.csv", b'Part,Note\nR1,"' + b"x" * 200_000, "document_damaged")
    assert "line 2" in said


def test_kicad_and_step_files_that_are_broken(tmp_path):
    assert "line 1" in refused(tmp_path, "a.kicad_sch", b"(kicad_sch (version 1)", "document_damaged")
    assert "line 1" in refused(tmp_path, "a.kicad_pro", b'{"board": ', "document_damaged")
    refused(tmp_path, "a.kicad_pcb", b"(kicad_pcb " + b"(a " * 5000, "document_damaged")
    refused(tmp_path, "a.step", b"ISO-10303-21;\nHEADER;\n#1=PRODUCT('", "step_truncated")


def test_a_document_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_elsewhere, "CPU_SECONDS", 1)
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(400, lines_count=40))
    with pytest.raises(ToolError, match=r"a\.pdf takes more than 1 s of computing; [\d,]+ of 400 pages") as found:
        read_document(path, "a.pdf")
    assert found.value.kind == "document_too_slow"


def test_a_document_that_takes_too_much_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_elsewhere, "MEMORY_MB", 60)
    path = tmp_path / "a.html"
    path.write_text("<html>" + "<p>a<b>b</b>" * 600_000)
    with pytest.raises(OverLimit, match=r"a\.html takes more than 60 MiB") as found:
        read_document(path, "a.html")
    assert found.value.kind == "document_memory"


def test_what_reads_a_document_can_open_nothing_else(tmp_path, monkeypatch):
    """A reader that was taken over: it has the document and its answer, and no other file or socket."""
    monkeypatch.setattr(reading_elsewhere, "_MODULE", "metaforge.knowledge.reading_process")
    taken_over = tmp_path / "taken_over.py"
    taken_over.write_text(
        "import socket, sys\n"
        "from metaforge.knowledge import parsing, reading_process\n"
        "from metaforge.knowledge.passages import Passage\n"
        "def attempt(act):\n"
        "    try:\n        act()\n        return 'done'\n"
        "    except OSError as fault:\n        return f'errno {fault.errno}'\n"
        "def parse(data, kind, name, told):\n"
        "    tried = [lambda: open('/etc/passwd'), lambda: open('/tmp/x', 'w'), socket.socket]\n"
        "    return parsing.Parsed([Passage(', '.join(map(attempt, tried)))])\n"
        "reading_process.parse = parse\n"
        "reading_process.main()\n"
    )
    original = reading_elsewhere.subprocess.Popen

    def popen(command, **how):
        return original([command[0], str(taken_over), command[-1]], **how)

    monkeypatch.setattr(reading_elsewhere.subprocess, "Popen", popen)
    path = tmp_path / "a.html"
    path.write_text("<html>Seen")
    assert read_document(path, "a.html").passages[0].text == "errno 24, errno 24, errno 24"


def test_a_reader_that_crashes_takes_nothing_with_it(tmp_path, monkeypatch):
    original = reading_elsewhere.subprocess.Popen

    def popen(command, **how):
        return original([command[0], "-c", "import os; os.kill(os.getpid(), 11)"], **how)

    monkeypatch.setattr(reading_elsewhere.subprocess, "Popen", popen)
    assert "SIGSEGV" in refused(tmp_path, "a.html", b"<html>Seen", "document_damaged")


def test_a_reader_that_writes_without_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_elsewhere, "MAX_ANSWER_BYTES", 1 << 20)
    original = reading_elsewhere.subprocess.Popen

    def popen(command, **how):
        return original([command[0], "-c", "while True: print('{}' + ' ' * 9999)"], **how)

    monkeypatch.setattr(reading_elsewhere.subprocess, "Popen", popen)
    assert "more than 1 MiB" in refused(tmp_path, "a.html", b"<html>Seen", "document_damaged")


def test_a_pipe_is_no_document(tmp_path):
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(ToolError, match="no ordinary file"):
        read_document(tmp_path / "a.md", "a.md")


def test_a_text_at_hand_is_bounded_like_a_file():
    with pytest.raises(OverLimit, match="16 MiB"):
        passages_of_text("a" * (limits.MAX_TEXT_BYTES + 1))
    with pytest.raises(ToolError, match="0 bytes"):
        passages_of_text("")
