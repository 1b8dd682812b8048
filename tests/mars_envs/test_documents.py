"""Documents that are strings, files, or passages of a pool."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.reading import Document, FileDocument, JoinedDocument, Part, Passage, TextDocument
from mars_envs.reading.document import digest_of
from mars_envs.reading.joined import HEADER

TEXT = "Zoë 😀 said:\r\n“漢字”\n" * 9000  # several blocks, seams within characters


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "document.txt"
    path.write_bytes(data)
    return path


def pool() -> list[Passage]:
    return [Passage(f"d{i}", f"Title {i}" * (i % 3 > 0), f"Text of {i}: é😀.") for i in range(7)]


def joined(order: list[int], header: str = HEADER) -> JoinedDocument:
    return JoinedDocument(pool(), order, header=header)


def reference(order: list[int], header: str = HEADER) -> str:
    passages = [pool()[number] for number in order]
    return "\n\n".join(
        header.format(number=place) + (p.title + "\n" if p.title else "") + p.text
        for place, p in enumerate(passages, start=1)
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
@given(start=st.integers(-5, 200_000), length=st.integers(0, 100_000))
def test_a_file_reads_as_its_text_does(
    tmp_path_factory: pytest.TempPathFactory, encoding: str, start: int, length: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"{encoding}.txt"
    if not path.exists():
        path.write_bytes(TEXT.encode(encoding))
    document = FileDocument(path, encoding="utf-16-le" if encoding == "utf-16-le" else "utf-8")
    assert len(document) == len(TEXT)
    assert document.read(start, start + length) == TextDocument(TEXT).read(start, start + length)


@given(
    order=st.lists(st.integers(0, 6), max_size=8),
    start=st.integers(-3, 400),
    length=st.integers(0, 400),
)
def test_joined_passages_read_as_their_text_does(order: list[int], start: int, length: int) -> None:
    for header in ("", HEADER):
        text = reference(order, header)
        document = joined(order, header)
        assert len(document) == len(text)
        assert document.read(start, start + length) == TextDocument(text).read(
            start, start + length
        )
        assert "".join(document.texts()) == text


def test_parts_of_joined_passages_hold_header_title_and_text() -> None:
    document = joined([2, 0, 1])
    assert [document.read(part.start, part.end) for part in document.parts] == [
        "Document 1:\nTitle 2\nText of 2: é😀.",
        "Document 2:\nText of 0: é😀.",
        "Document 3:\nTitle 1\nText of 1: é😀.",
    ]
    assert [part.doc_id for part in document.parts] == ["d2", "d0", "d1"]
    assert document.parts[-1] == document.parts[1:][1] == list(document.parts)[2]
    assert document.read(document.text_start(2), document.parts[2].end) == "Text of 1: é😀."
    with pytest.raises(IndexError):
        document.parts[3]


def test_a_pool_is_shared_and_not_copied() -> None:
    passages = pool()
    documents = [JoinedDocument(passages, [i]) for i in range(3)]
    assert all(document.passages is passages for document in documents)
    assert all(copy.deepcopy(documents)[i].passages is passages for i in range(3))


def test_equal_texts_have_equal_digests_whatever_they_are_stored_as(tmp_path: Path) -> None:
    text = reference([4, 1])
    documents: list[Document] = [
        TextDocument(text),
        joined([4, 1]),
        FileDocument(saved(tmp_path, text.encode("utf-16"))),
    ]
    assert {document.digest for document in documents} == {digest_of(text)}
    assert TextDocument(text + " ").digest != documents[0].digest


@pytest.mark.parametrize("kind", ["text", "file", "joined"])
def test_copies_of_a_document_are_itself_and_pickles_are_equal(kind: str, tmp_path: Path) -> None:
    part = Part(doc_id="a", start=0, end=3)
    document: Any = {
        "text": TextDocument("one two", [part]),
        "file": FileDocument(saved(tmp_path, b"one two"), parts=[part]),
        "joined": JoinedDocument([Passage("a", "", "one")]),
    }[kind]
    assert copy.deepcopy(document) is document
    again = pickle.loads(pickle.dumps(document))
    assert again.read(0, 99) == document.read(0, 99)
    assert list(again.parts) == list(document.parts)


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"good \xff bad", "0xff at byte 5"),
        (b"cut \xe2\x82", "0xe2 at byte 4"),
        (b"x" * 65_535 + b"\xc3(", "0xc3 at byte 65535"),
        (b"\xed\xa0\x80", "0xed at byte 0"),
    ],
)
def test_bytes_that_are_no_utf_8_are_refused_with_their_place(
    data: bytes, at: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidTask, match=f"expected text in utf-8, got the byte {at} .*replace"):
        len(FileDocument(saved(tmp_path, data)))


@given(st.binary(max_size=300))
def test_bytes_that_are_no_utf_8_can_be_replaced(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return
    filler = b"y" * 65_400  # so that the odd bytes are at the seam of two blocks
    path = saved(tmp_path_factory.getbasetemp(), filler + data)
    document = FileDocument(path, errors="replace")
    expected = (filler + data).decode("utf-8", "replace")
    assert len(document) == len(expected)
    assert document.read(65_300, len(expected)) == expected[65_300:]


def test_an_empty_file_is_an_empty_document(tmp_path: Path) -> None:
    document = FileDocument(saved(tmp_path, b""))
    assert (len(document), document.read(0, 5), document.digest) == (0, "", digest_of(""))


def test_a_file_that_changes_is_found_out(tmp_path: Path) -> None:
    path = saved(tmp_path, b"one two")
    document = FileDocument(path)
    assert document.read(0, 3) == "one"
    path.write_bytes(b"six more")
    with pytest.raises(InvalidTask, match="has changed since it was opened"):
        document.read(0, 3)
    path.unlink()
    with pytest.raises(InvalidTask, match="any more: No such file"):
        document.read(0, 3)


def test_only_the_blocks_of_a_piece_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = FileDocument(saved(tmp_path, b"0123456789" * 100_000))
    assert len(document) == 1_000_000
    read = []
    pread = os.pread

    def watched(descriptor: int, size: int, position: int) -> bytes:
        read.append(size)
        return pread(descriptor, size, position)

    monkeypatch.setattr(os, "pread", watched)
    assert document.read(500_003, 500_006) == "345"
    assert sum(read) == 65_536


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"errors": "ignore"}, InvalidSetting, 'errors must be "strict" or "replace"'),
        ({"encoding": "utf-9"}, InvalidSetting, "no encoding of text is called 'utf-9'"),
        ({"encoding": "base64"}, InvalidSetting, "no encoding of text"),
        ({"encoding": "iso2022_jp"}, InvalidTask, "cannot be read from its middle"),
    ],
)
def test_ways_of_reading_that_cannot_work_are_refused(
    options: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, b"\x1b$B4A")  # Japanese that never shifts back
    with pytest.raises(error, match=message):
        len(FileDocument(path, **options))


def test_a_file_that_is_not_there_is_refused_when_it_is_read(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "none.txt")
    with pytest.raises(InvalidTask, match=r"cannot read the document .*none.txt: No such file"):
        document.read(0, 1)
