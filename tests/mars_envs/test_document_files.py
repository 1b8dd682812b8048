"""Text, Markdown, HTML and PDF files as documents."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.reading import Document, FileDocument, chunk_document
from mars_envs.reading.files import open_document

PAGE = """<!DOCTYPE html>
<html><head><title>The  tide</title><style>p { color: red }</style></head>
<body><script>var hidden = 1;</script>
<p>Before any
   heading.</p>
<h1>Low <em>Tide</em></h1>
<p>A film&nbsp;by <a href="x">Ida Maes</a>.<br>It is short.</p>
<ul><li>one</li><li>two <b>three</b></li></ul>
<!-- a comment -->
<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>
<h2>Höhe &amp; Ufer</h2>
<pre>  x = 1
  y = 2</pre>
</body></html>
"""


def save(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def pdf(folder: Path, *pages: str, password: str = "") -> Path:
    fpdf = pytest.importorskip("fpdf")
    writer = fpdf.FPDF()
    writer.set_font("helvetica", size=12)
    for text in pages:
        writer.add_page()
        if text:
            writer.multi_cell(0, text=text)
    if password:
        writer.set_encryption(owner_password="owner", user_password=password)
    path = folder / "file.pdf"
    writer.output(str(path))
    return path


def text_of(document: Document) -> str:
    return document.read(0, len(document))


def by_part(document: Document) -> list[tuple[str, str]]:
    return [(part.title, document.read(part.start, part.end)) for part in document.parts]


def test_a_text_file_stays_in_its_file(tmp_path: Path) -> None:
    document = open_document(save(tmp_path, "a.txt", "One.\r\nTwo — é.\n"))
    assert isinstance(document, FileDocument)
    assert (text_of(document), document.parts) == ("One.\r\nTwo — é.\n", ())


@pytest.mark.parametrize("name", ["a.rst", "README", "a.py", "a.json"])
def test_other_files_are_read_as_text(name: str, tmp_path: Path) -> None:
    assert text_of(open_document(save(tmp_path, name, "<p> # x"))) == "<p> # x"


def test_encodings_are_known_by_their_mark_or_named(tmp_path: Path) -> None:
    assert text_of(open_document(save(tmp_path, "a.txt", "né".encode("utf-16")))) == "né"
    latin = save(tmp_path, "b.txt", "né".encode("latin-1"))
    assert text_of(open_document(latin, encoding="latin-1")) == "né"
    with pytest.raises(InvalidTask, match=r"got the byte 0xe9 at byte 1 .* name its encoding"):
        open_document(latin)
    assert text_of(open_document(latin, errors="replace")) == "n\ufffd"
    with pytest.raises(InvalidSetting, match="no encoding of text is called 'latin-99'"):
        open_document(latin, encoding="latin-99")


def test_the_sections_of_a_markdown_file_are_its_parts(tmp_path: Path) -> None:
    text = "Intro.\n\n# One #\ntext\n```sh\n# no heading\n```\n## Two\r\nmore\n####### no\n#no\n"
    document = open_document(save(tmp_path, "a.md", text))
    assert by_part(document) == [
        ("", "Intro.\n\n"),
        ("One", "# One #\ntext\n```sh\n# no heading\n```\n"),
        ("Two", "## Two\r\nmore\n####### no\n#no\n"),
    ]
    assert text_of(document) == text


def test_a_markdown_file_without_headings_has_no_parts(tmp_path: Path) -> None:
    assert open_document(save(tmp_path, "a.md", "text\n" * 30_000)).parts == ()
    assert open_document(save(tmp_path, "b.md", "")).parts == ()


def test_sections_are_found_across_blocks_of_a_long_file(tmp_path: Path) -> None:
    text = "".join(f"# H{i}\n{'word ' * 5000}\r\n" for i in range(20)) + "x" * 300_000
    document = open_document(save(tmp_path, "a.md", text))
    assert [part.title for part in document.parts] == [f"H{i}" for i in range(20)]
    assert all(document.read(p.start, p.start + 3) == "# H" for p in document.parts)


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# A", "A"),
        ("## A ##", "A"),
        ("# A #\t ", "A"),
        ("# C#", "C#"),
        ("# C# #", "C#"),
        ("# #", ""),
        ("#  ", ""),
        (f"# A{' ' * 200_000}B", f"A{' ' * 200_000}B"),
        (f"# A{'#' * 200_000}B", f"A{'#' * 200_000}B"),
        (f"# A{' #' * 100_000} B", f"A{' #' * 100_000} B"),
    ],
    ids=range(10),
)
def test_a_heading_is_read_once_whatever_closes_it(
    heading: str, title: str, tmp_path: Path
) -> None:
    """The long ones would take hours where any run of blanks or # is tried at every length."""
    path = save(tmp_path, "notes.md", f"{heading}\ntext\n")
    assert [part.title for part in open_document(path).parts] == [title]


def test_a_page_is_its_text_in_sections(tmp_path: Path) -> None:
    pytest.importorskip("bs4")
    document = open_document(save(tmp_path, "a.html", PAGE))
    assert by_part(document) == [
        ("The tide", "Before any heading."),
        (
            "Low Tide",
            "Low Tide\n\nA film by Ida Maes.\nIt is short.\n\none\ntwo three\n\na b\nc",
        ),
        ("Höhe & Ufer", "Höhe & Ufer\n\n  x = 1\n  y = 2"),
    ]
    assert text_of(document) == "\n\n".join(text for _, text in by_part(document))


def test_a_page_says_its_own_encoding(tmp_path: Path) -> None:
    pytest.importorskip("bs4")
    page = "<html><head><meta charset='iso-8859-1'></head><body>né</body></html>"
    path = save(tmp_path, "page", page.encode("latin-1"))  # known by how it begins
    assert text_of(open_document(path)) == "né"


def test_deeply_nested_and_broken_pages_are_read(tmp_path: Path) -> None:
    pytest.importorskip("bs4")
    deep = "<div>" * 3000 + "deep" + "</p></b>"
    assert text_of(open_document(save(tmp_path, "a.html", deep))) == "deep"
    xhtml = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><p>x</p></html>'
    assert text_of(open_document(save(tmp_path, "a.xhtml", xhtml))) == "x"


def test_a_page_is_put_together_once(tmp_path: Path) -> None:
    """Copying what is there for every piece would move 200 gigabytes here."""
    pytest.importorskip("bs4")
    path = save(tmp_path, "long.html", f"<p>{'x' * 10_000_000}{'<br>y' * 20_000}")
    assert len(open_document(path)) == 10_000_000 + 2 * 20_000


def test_headings_within_headings_are_each_looked_at_shortly(tmp_path: Path) -> None:
    """Each one holds all that follow, as where a page forgets to close them."""
    pytest.importorskip("bs4")
    page = "<h1>one<h2>two<p>text</p><h3>" + "x" * 500
    document = open_document(save(tmp_path, "open.html", page))
    assert by_part(document)[-1] == ("x" * 300, "x" * 500)
    assert [title.split()[0] for title, _ in by_part(document)[:2]] == ["one", "two"]
    nested = save(tmp_path, "nested.html", "<h1>" * 3_000 + "x" * 3_000_000)
    assert len(open_document(nested)) == 3_000_000


def test_the_pages_of_a_pdf_file_are_its_parts(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    document = open_document(pdf(tmp_path, "Low Tide is a film.", "", "It is short."))
    assert by_part(document) == [
        ("page 1", "Low Tide is a film."),
        ("page 2", ""),
        ("page 3", "It is short."),
    ]
    chunks = chunk_document(document, size=6, align="document")
    assert [chunk.strip() for chunk in chunks] == ["Low Tide is a film.", "It is short."]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.pdf", b"no pdf", "expected a PDF file, got one that does not begin like one"),
        ("a.pdf", b"%PDF-1.7\nrubbish", "whose text cannot be taken out"),
        ("a.docx", b"PK\x03\x04rest", "got a packed or binary file; convert it"),
        ("a.txt.gz", b"\x1f\x8brest", "got a packed or binary file; convert it"),
        ("a.html", b"<html><script>x</script></html>", "this page has no text in it"),
        ("a.bin", b"\x00\x01\xff\xfe", "expected text in utf-8, got the byte 0xff at byte 2"),
    ],
)
def test_files_that_have_no_text_are_refused(
    name: str, data: bytes, message: str, tmp_path: Path
) -> None:
    pytest.importorskip("pypdf")
    pytest.importorskip("bs4")
    with pytest.raises(InvalidTask, match=message):
        open_document(save(tmp_path, name, data))


def test_pdf_files_that_are_scans_or_locked_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    with pytest.raises(InvalidTask, match=r"none of its 2 pages has text .* text recognition"):
        open_document(pdf(tmp_path, "", ""))
    with pytest.raises(InvalidTask, match=r"asks for a password|cannot be taken out"):
        open_document(pdf(tmp_path, "secret", password="x"))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match=r"cannot read the document .*none.pdf: No such file"):
        open_document(tmp_path / "none.pdf")
    with pytest.raises(InvalidTask, match="Is a directory"):
        open_document(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for document in (lambda: open_document(path), lambda: len(FileDocument(path))):
        with pytest.raises(InvalidTask, match=r"regular file.*`-` reads text from standard input"):
            document()


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_bytes_that_are_no_text_are_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    path = save(tmp_path, name, b"ab\xff")
    with pytest.raises(InvalidTask, match=r"0xff at byte 2.*--encoding.*--errors replace"):
        open_document(path)
    assert text_of(open_document(path, errors="replace")) == "ab\ufffd"


@pytest.mark.parametrize(("name", "package"), [("a.pdf", "pypdf"), ("a.html", "bs4")])
def test_without_the_extra_the_error_names_it(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    path = save(tmp_path, name, "%PDF-1.7" if package == "pypdf" else "<html>x")
    with pytest.raises(ImportError, match=r"pip install 'mars-envs\[documents\]'"):
        open_document(path)


@pytest.mark.parametrize(
    ("piece", "n"),
    [
        ("<p>" + "word " * 14 + "</p>", 40_000),
        *(("<h1>ab", 16_000), ("<h1>a<h2>b</h2>", 8_000), ("<div>a", 16_000)),
        *(("x<!-- ", 20_000), ("x<a ", 20_000), ("x</a ", 20_000), ("x< ", 20_000)),
    ],
)
def test_large_pages_of_any_kind_are_read_in_one_go(piece: str, n: int, tmp_path: Path) -> None:
    """In quadratic time, each would take minutes."""
    path = tmp_path / "page.html"
    path.write_text("<html>x" + piece * n)
    assert len(open_document(path)) >= n
