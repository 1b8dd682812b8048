"""Documents from files of any kind: text, Markdown, HTML, PDF.

Positions are those of the extracted text; `parts` say which section or page a position is in. Text
and Markdown stay in their files; of HTML and PDF the text is taken out and kept.
"""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from ..errors import InvalidTask
from ..wording import counted
from .document import Document, Part, TextDocument
from .file_document import FileDocument, refuse_special

_HTML: Final = (".html", ".htm", ".xhtml")
_MARKDOWN: Final = (".md", ".markdown")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PACKED: Final = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"7z\xbc\xaf",
    b"BZh",
    b"\xfd7zXZ",
    b"\xd0\xcf\x11\xe0",
)
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
_OWN_LINES: Final = frozenset(
    (
        *_HEADINGS,
        *("address", "article", "aside", "blockquote", "body", "caption", "details", "div", "dl"),
        *("fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav"),
        *("ol", "p", "pre", "section", "summary", "table", "ul"),
    )
)
"""They end the line before them and their own."""
_BREAKS: Final = frozenset(("br", "dd", "dt", "li", "option", "tr"))
"""They end the line before them."""
_HIDDEN: Final = frozenset(("head", "script", "style", "template", "noscript", "svg", "math"))
_TITLE: Final = 300
"""Characters of a heading, at most: one that is never closed would hold the rest of its page."""
_END, _END_OF_PRE = object(), object()


def open_document(
    path: str | os.PathLike[str],
    *,
    encoding: str | None = None,
    errors: Literal["strict", "replace"] = "strict",
) -> Document:
    """Open a file as a document.

    Args:
        path: of a text, a Markdown file (`.md`; its parts are its sections), an HTML page (`.html`;
            parts likewise) or a PDF file (`.pdf`; its parts are its pages). HTML and PDF files are
            also known by how they begin.
        encoding: of the text; None: UTF-8, unless a byte order mark (or, in HTML, the page itself)
            says otherwise.
        errors: what becomes of bytes that are not in the encoding: "strict" refuses the file and
            says where they are; "replace" reads U+FFFD for them.

    Raises:
        InvalidTask: the file cannot be read, is of another kind, or has no text in it.
        InvalidSetting: no such encoding.
        ImportError: a PDF or HTML file, without the extra `documents`.
    """
    path = Path(path)
    kind = _kind(path)
    if kind == "pdf":
        return _from_pdf(path)
    if kind == "html":
        return _from_html(path, encoding)
    document = FileDocument(path, encoding=encoding or "utf-8", errors=errors)
    length = len(document)  # decodes it: what is wrong is said now
    if kind == "markdown":
        lines = _lines(document)
        parts = tuple(_sections(_headings(lines), length))
        return FileDocument(path, encoding=encoding or "utf-8", errors=errors, parts=parts)
    return document


def _kind(path: Path) -> str:
    try:
        refuse_special(path)
        with path.open("rb") as file:
            head = file.read(2048)
    except OSError as error:
        raise InvalidTask(
            f"cannot read the document {path}: {error.strerror or error}; check the path"
        ) from error
    suffix = path.suffix.lower()
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"%pdf-"):
        return "pdf"
    if suffix == ".pdf":
        raise InvalidTask(f"{path}: expected a PDF file, got one that does not begin like one")
    if suffix in _HTML or start.startswith((b"<!doctype html", b"<html")):
        return "html"
    if head.startswith(_PACKED):
        raise InvalidTask(
            f"{path}: expected text, Markdown, HTML or PDF, got a packed or binary file; convert "
            "it to one of these (word processors export PDF and HTML)"
        )
    if suffix in _MARKDOWN:
        return "markdown"
    return "text"


def _from_pdf(path: Path) -> Document:
    try:
        import pypdf
    except ImportError as error:
        raise ImportError(
            f"{path}: PDF files need pypdf, which is not installed; pip install "
            "'mars-envs[documents]', or convert the file to text"
        ) from error
    pages: list[tuple[str, str]] = []
    try:
        with path.open("rb") as file:
            reader = pypdf.PdfReader(file)
            if reader.is_encrypted and not reader.decrypt(""):
                raise InvalidTask(f"{path}: this PDF file asks for a password; save it without one")
            for number, page in enumerate(reader.pages, start=1):
                pages.append((f"page {number}", _clean(page.extract_text())))
    except InvalidTask:
        raise
    except Exception as error:  # damaged files make the library fail in ways that it does not name
        raise InvalidTask(
            f"{path}: expected a PDF file, got one whose text cannot be taken out ({error}); "
            "convert it to text"
        ) from error
    if not any(text.strip() for _, text in pages):
        raise InvalidTask(
            f"{path}: none of its {counted(len(pages), 'page')} has text in it; a scan has to go "
            "through text recognition first"
        )
    return _joined(pages)


def _from_html(path: Path, encoding: str | None) -> Document:
    try:
        import bs4
    except ImportError as error:
        raise ImportError(
            f"{path}: HTML files need beautifulsoup4, which is not installed; pip install "
            "'mars-envs[documents]', or convert the file to text"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it minds XHTML, which is read all the same
        soup = bs4.BeautifulSoup(_markup(path, encoding, bs4), "html.parser")
    sections: list[tuple[str, list[str]]] = [(_heading(soup.title, bs4) if soup.title else "", [])]
    for heading, text in _flow(soup, bs4):
        if heading:
            sections.append((heading, []))
        sections[-1][1].append(text)
    found = [(name, _clean("".join(texts)).strip("\n")) for name, texts in sections]
    found = [(name, text) for name, text in found if text.strip()]
    if not found:
        raise InvalidTask(f"{path}: this page has no text in it")
    return _joined(found)


def _markup(path: Path, encoding: str | None, bs4: Any) -> str:
    """Return a page as text, in which no tag and no comment begins that does not end.

    Parsers of older Pythons look for each end up to the end of the page, in quadratic time.
    """
    known = [] if encoding is None else [encoding]
    raw = path.read_bytes()
    found = bs4.dammit.UnicodeDammit(raw, known_definite_encodings=known, is_html=True)
    markup: str = found.unicode_markup or raw.decode("utf-8", "replace")
    for opening, closing in (("<!--", "-->"), ("<", ">")):
        end = markup.rfind(closing) + 1
        markup = markup[:end] + markup[end:].replace(opening, opening.replace("<", "&lt;"))
    return markup


def _flow(root: Any, bs4: Any) -> Iterator[tuple[str, str]]:
    """Yield the text of a page in order; with the name of a section where one begins.

    Without recursion: pages may be nested deeply.
    """
    waiting: list[Any] = [root]
    preformatted = 0
    fresh = True  # at the start of a line
    while waiting:
        node = waiting.pop()
        heading = text = ""
        if node is _END or node is _END_OF_PRE:
            preformatted -= node is _END_OF_PRE
            text = "\n"
        elif isinstance(node, bs4.element.PreformattedString):
            continue  # comments, declarations
        elif isinstance(node, bs4.NavigableString):
            text = str(node)
            if not preformatted:
                text = re.sub(r"\s+", " ", text)
                text = text.lstrip(" ") if fresh else text
        elif node.name not in _HIDDEN:
            if node.name in _HEADINGS:
                heading = _heading(node, bs4)
            if node.name in _OWN_LINES or node.name in _BREAKS:
                text = "\n"
            elif node.name in ("td", "th") and not fresh:
                text = " "
            preformatted += node.name == "pre"
            if node.name in _OWN_LINES:
                waiting.append(_END_OF_PRE if node.name == "pre" else _END)
            waiting.extend(reversed(node.contents))
        if text:
            yield heading, text
            fresh = text.endswith("\n")


def _heading(node: Any, bs4: Any) -> str:
    """Return the text of a heading, up to where another one begins."""
    words: list[str] = []
    left = _TITLE
    waiting: list[Any] = list(reversed(node.contents))
    while waiting and left > 0:
        part = waiting.pop()
        if isinstance(part, bs4.Tag):
            if part.name in _HEADINGS:
                break
            waiting.extend(reversed(part.contents))
        elif type(part) in (bs4.NavigableString, bs4.CData):
            words += part[:left].split()
            left -= len(part) + 1
    return " ".join(words)


def _clean(text: str) -> str:
    """Return text that UTF-8 can encode, without blanks at ends of lines and many empty lines."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")
    lines = (line.rstrip() for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _joined(sections: Iterable[tuple[str, str]]) -> TextDocument:
    parts: list[Part] = []
    texts: list[str] = []
    position = 0
    for number, (title, text) in enumerate(sections, start=1):
        end = position + len(text)
        parts.append(Part(doc_id=str(number), start=position, end=end, title=title))
        texts.append(f"{text}\n\n")
        position = end + 2
    return TextDocument("".join(texts).removesuffix("\n\n"), parts)


def _lines(document: FileDocument) -> Iterator[tuple[int, str]]:
    """Yield lines of a document and where they start."""
    position = 0
    rest: list[str] = []
    for text in itertools.chain(document.texts(), [""]):
        if text and "\n" not in text and "\r" not in text:
            rest.append(text)  # a long line is put together once
            continue
        lines = ("".join(rest) + text).splitlines(keepends=True)
        rest = [lines.pop()] if text else []
        for line in lines:
            yield position, line
            position += len(line)


def _headings(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the headings of a Markdown text, those within fences of code left out."""
    fence = ""
    for position, line in lines:
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        elif not fence and (mark := _HEADING.match(line)):
            yield position, _without_closing(line[mark.end() :].strip())


def _without_closing(title: str) -> str:
    """Return a heading without the run of # that may close it, but "C#" whole."""
    bare = title.rstrip("#")
    return title if bare and not bare[-1].isspace() else bare.rstrip()


def _sections(headings: Iterable[tuple[int, str]], length: int) -> Iterator[Part]:
    places = list(headings)
    if not places:
        return
    if places[0][0] > 0:
        places.insert(0, (0, ""))
    ends = [start for start, _ in places[1:]] + [length]
    for number, ((start, title), end) in enumerate(zip(places, ends, strict=True), start=1):
        yield Part(doc_id=str(number), start=start, end=end, title=title)
