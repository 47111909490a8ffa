"""Pages of a PDF become headings, paragraphs and rows with their page."""

import io

import pytest

from metaforge.knowledge.reading import read_document

pytest.importorskip("pdfplumber", reason="the extra `knowledge` is not installed")
pytest.importorskip("reportlab")

from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageBreak, PageTemplate, Paragraph, SimpleDocTemplate, Table

STYLES = getSampleStyleSheet()
GRID = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]


def saved(*flow, on_page=lambda canvas, document: None):
    out = io.BytesIO()
    SimpleDocTemplate(out).build(list(flow), onFirstPage=on_page, onLaterPages=on_page)
    return out.getvalue()


def drawn(draw):
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(600, 800))
    draw(canvas)
    canvas.save()
    return out.getvalue()


def read(folder, data, name="sheet.pdf"):
    path = folder / name
    path.write_bytes(data)
    return read_document(path, name)


def heading(text, level=1):
    return Paragraph(text, STYLES[f"Heading{level}"])


def body(text):
    return Paragraph(text, STYLES["BodyText"])


def test_a_datasheet_row_is_found_with_its_header_heading_and_page(tmp_path):
    rows = [["Part", "Input (V)", "Output (V)"], ["LM317T", "40", "1.25 to 37"], ["LM7805", "35", "5"]]
    told = []
    data = saved(
        Paragraph("Regulators", STYLES["Title"]), heading("1 Overview"), body("Two parts are kept in stock."),
        PageBreak(), heading("2 Ratings"), heading("2.1 Limits", 2), body("Values at 25 C."), Table(rows, style=GRID),
        heading("3 Care"), body("Keep them dry."),
    )  # fmt: skip
    path = tmp_path / "sheet.pdf"
    path.write_bytes(data)
    document = read_document(path, "sheet.pdf", progress=lambda done, total: told.append((done, total)))
    stock, limits, first, second, care = document.passages
    assert (stock.heading, stock.text, stock.page) == ("Regulators > 1 Overview", "Two parts are kept in stock.", 1)
    assert limits.heading == "Regulators > 2 Ratings > 2.1 Limits"
    assert (first.text, first.context) == ("LM317T | 40 | 1.25 to 37", "Part | Input (V) | Output (V)")
    assert (second.text, second.kind, second.page) == ("LM7805 | 35 | 5", "table_row", 2)
    assert second.heading == limits.heading
    assert (care.heading, care.text) == ("Regulators > 3 Care", "Keep them dry.")
    assert (document.pages_count, document.notes) == (2, ())
    assert told == [(1, 2), (2, 2)]


def test_cells_over_several_rows_and_columns_are_in_each_of_them(tmp_path):
    rows = [
        ["Parameter", "Limits", ""], ["", "Min", "Max"], ["Output", "1.2", "1.3"], ["", "1.1", "1.4"],
    ]  # fmt: skip
    spans = [("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1)), ("SPAN", (0, 2), (0, 3))]
    first, second = read(tmp_path, saved(Table(rows, style=GRID + spans))).passages
    assert first.context == "Parameter | Limits Min | Limits Max"
    assert (first.text, second.text) == ("Output | 1.2 | 1.3", "Output | 1.1 | 1.4")


def test_a_table_without_rulings_is_told_by_its_columns(tmp_path):
    rows = [
        ["Part", "Voltage", "Current"],
        ["MC48A", "48 V", "10 A"],
        ["MC60B", "60 V", "8 A"],
        ["MC72C", "72 V", "6 A"],
    ]
    data = saved(body("These are in stock."), Table(rows, colWidths=120), body("Others are made on request."))
    prose, first, second, third, after = read(tmp_path, data).passages
    assert (first.text, first.context) == ("MC48A | 48 V | 10 A", "Part | Voltage | Current")
    assert [each.kind for each in (first, second, third)] == ["table_row"] * 3
    assert (prose.text, after.text) == ("These are in stock.", "Others are made on request.")


def test_a_table_that_goes_on_keeps_the_header_of_the_page_before(tmp_path):
    rows = [["Part", "Voltage"], *([f"MC{number}", f"{number} V"] for number in range(100, 180))]
    passages = read(tmp_path, saved(Table(rows, style=GRID))).passages
    assert len(passages) == 80
    assert {each.page for each in passages} == {1, 2, 3}
    assert {each.context for each in passages} == {"Part | Voltage"}


def test_a_subscript_stays_in_its_name(tmp_path):
    text = "The voltage V<sub>IN</sub> must stay below V<sub>OUT</sub> plus 3 V."
    assert read(tmp_path, saved(body(text))).passages[0].text == "The voltage VIN must stay below VOUT plus 3 V."


def test_columns_are_read_one_after_the_other(tmp_path):
    left = " ".join(f"Left sentence number {number} speaks of pumps." for number in range(60))
    right = "Right of it stands what is said of motors."
    out = io.BytesIO()
    document = BaseDocTemplate(out, pagesize=(600, 800))
    frames = [Frame(40, 40, 250, 700), Frame(310, 40, 250, 700)]
    document.addPageTemplates([PageTemplate(frames=frames)])
    document.build([body(left), body(right)])
    text = " ".join(each.text.replace("\n", " ") for each in read(tmp_path, out.getvalue()).passages)
    assert text == f"{left} {right}"


def test_what_stands_on_every_page_is_taken_in_once(tmp_path):
    def on_page(canvas, document):
        canvas.drawString(72, 820, "LM317 data sheet, revision D")
        canvas.drawString(280, 20, f"Page {document.page}")

    flow = [part for number in range(6) for part in (body(f"Chapter text {number} of the sheet."), PageBreak())]
    text = "\n".join(each.text for each in read(tmp_path, saved(*flow, on_page=on_page)).passages)
    assert text.count("revision D") == 1
    assert "Page" not in text
    assert text.count("Chapter text") == 6


def test_a_sentence_over_the_end_of_a_page_is_one(tmp_path):
    def draw(canvas):
        canvas.drawString(72, 90, "The bolt must be tightened with a torque")
        canvas.showPage()
        canvas.drawString(72, 700, "of no more than 7 Nm.")

    passage = read(tmp_path, drawn(draw)).passages[0]
    assert passage.text == "The bolt must be tightened with a torque of no more than 7 Nm."
    assert passage.page == 1


def test_a_word_cut_at_the_end_of_a_line_is_put_together_and_a_compound_keeps_its_hyphen(tmp_path):
    def draw(canvas):
        lines = ["Use a low-", "power amplifier and a regu-", "lator with it. Power is low."]
        for number, line in enumerate(lines):
            canvas.drawString(72, 700 - 14 * number, line)

    text = read(tmp_path, drawn(draw)).passages[0].text
    assert text == "Use a low-power amplifier and a regulator with it. Power is low."


def test_a_table_of_contents_says_nothing_of_its_own(tmp_path):
    def draw(canvas):
        canvas.drawString(72, 700, "Overview ............................ 3")
        canvas.drawString(72, 660, "The pump moves water.")

    assert [each.text for each in read(tmp_path, drawn(draw)).passages] == ["The pump moves water."]


def test_pages_that_are_pictures_are_told(tmp_path):
    def draw(canvas):
        canvas.drawString(72, 700, "The pump moves water.")
        canvas.showPage()
        canvas.rect(72, 400, 200, 200, fill=1)
        canvas.showPage()

    document = read(tmp_path, drawn(draw))
    assert document.notes == ("1 of 2 pages without text: pictures of text are not read",)


@pytest.mark.parametrize("font", ["STSong-Light", "HeiseiMin-W3"])
def test_letters_of_fonts_that_are_not_in_the_file_are_read(tmp_path, font):
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfbase.pdfmetrics import registerFont

    registerFont(UnicodeCIDFont(font))

    def draw(canvas):
        canvas.setFont(font, 12)
        canvas.drawString(72, 700, "中国日本 LM317")

    assert read(tmp_path, drawn(draw)).passages[0].text.replace(" ", "") == "中国日本LM317"
