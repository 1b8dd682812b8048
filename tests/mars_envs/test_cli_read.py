"""`mars-envs read`: from a file and a question to an answer, its evidence and their places."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mars_envs.cli import main
from mars_envs.parallel_memory.methods import METHODS

FILLER = "Nothing much happened in the valley that year. "
FIRST, SECOND = "The mayor of Olm is Tia Nor.", "The dog of Tia Nor is called Rex."
TEXT = FILLER * 20 + SECOND + " " + FILLER * 20 + FIRST + " " + FILLER * 20
QUESTION = "What is the dog of the mayor of Olm called?"

Server = Any


@pytest.fixture
def server(chat_server: ModuleType) -> Iterator[Server]:
    pytest.importorskip("httpx")
    with chat_server.Server() as server:
        server.answer = lambda body, number: reply(body)
        yield server


def reply(body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
    """A model in one rule: it copies the passages that it is shown, and knows one answer."""
    prompt = body["messages"][0]["content"]
    shown = [passage for passage in (FIRST, SECOND) if passage in prompt]
    text = f"<check>{'yes' if shown else 'no'}</check> {' '.join(shown)} \\boxed{{Rex}}"
    return 200, {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}, {}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "olm.txt"
    path.write_text(TEXT)
    return path


def read(*words: object) -> int:
    return main(["read", *map(str, words), "--chunk-tokens", "60"])


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_a_model_behind_an_address_reads_and_its_evidence_has_places(
    server: Server,
    document: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    assert read(document, QUESTION, "--model", server.url, "--key-env", "MY_KEY", "--json") == 0
    told = found(capsys)
    assert told["answer"] == "Rex"
    quotes = [quote for one in told["evidence"] for quote in one["quotes"]]
    places = {(TEXT.index(passage), passage) for passage in (FIRST, SECOND)}
    assert places == {(quote["start"], quote["text"]) for quote in quotes}
    assert {body["model"] for body in server.asked} == {"the-model"}
    assert {body["temperature"] for body in server.asked} == {0.0}
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret"}
    assert "secret" not in json.dumps(told)
    assert len(server.asked) == len(told["calls"])


def test_progress_evidence_memory_and_answer_are_shown(
    server: Server, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(document, QUESTION, "--model", server.url, "--name", "m", "--max-turns", 2) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "turn 1 of at most 2" in shown
    assert "something new in 2" in shown
    assert "turn 2 of at most 2" in shown
    assert f"{TEXT.index(FIRST)}-{TEXT.index(FIRST) + len(FIRST)}" in shown
    assert "memory" in shown
    assert "answer Rex" in shown
    assert server.asked[0]["model"] == "m"
    assert read(document, QUESTION, "--model", f"{server.url}#other", "--max-turns", 1) == 0
    assert server.asked[-1]["model"] == "other"


@pytest.mark.parametrize(
    ("note", "mark"),
    [
        (
            "The mayor of Olm is a goat.",
            "[not in the chunk word for word] The mayor of Olm is a",
        ),
        ("A goat.", "[too short to look for] A goat."),
    ],
)
def test_what_a_model_made_up_is_not_shown_as_a_quote(
    note: str,
    mark: str,
    server: Server,
    document: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choice = {"message": {"content": f"<check>yes</check> {note}"}}
    server.answer = lambda body, number: (200, {"choices": [choice]}, {})
    monkeypatch.setattr("mars_envs.cli.read.console.width", 200)
    read(document, QUESTION, "--model", server.url, "--max-turns", 1)
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if "goat" in line and "│" in line]
    assert mark in rows[0]
    assert not re.search(r"\d-\d", rows[0])


@pytest.mark.parametrize(("settings", "notes"), [("", True), ("strict=true,retries=0", False)])
def test_what_has_no_option_of_its_own_is_set_by_name(
    settings: str, notes: bool, server: Server, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = {"message": {"content": "I am not sure."}}  # without a tag: a no where that is strict
    server.answer = lambda body, number: (200, {"choices": [choice]}, {})
    read(document, QUESTION, "--model", server.url, "--json", "--settings", settings)
    assert bool(found(capsys)["evidence"]) == notes


def test_what_a_method_takes_beside_is_set_by_name_too(
    document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []
    for passes in (1, 2):
        options = ["--method", "recurrent", "--json", "--settings", f"passes={passes}"]
        read(document, QUESTION, "--model", "lexical", *options)
        calls.append(len(found(capsys)["calls"]))
    assert calls[1] - 1 == 2 * (calls[0] - 1), "and one call for the answer"


@pytest.mark.parametrize("method", METHODS)
def test_an_agent_without_a_model_reads_by_every_method(
    method: str, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if method == "retrieval":
        pytest.importorskip("bm25s")
    code = read(document, QUESTION, "--model", "lexical", "--method", method, "--json")
    told = found(capsys)
    assert told["method"] == method
    assert code == (0 if told["answer"] else 1)
    assert told["calls"][-1]["role"] == "answerer"


def test_where_no_server_is_nothing_is_read(
    document: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx")
    monkeypatch.setattr("trainers.policies.chat.LONGEST_DELAY_S", 0.0)
    monkeypatch.setattr("mars_envs.cli.read.answer", lambda *given, **options: pytest.fail("asked"))
    assert read(document, QUESTION, "--model", "http://127.0.0.1:9/v1", "--name", "m") == 2
    assert "nobody answers at http://127.0.0.1:9/v1 (ConnectError" in capsys.readouterr().err


def test_a_server_that_fails_on_every_third_call_is_outlived(
    server: Server,
    document: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trainers.policies.chat.LONGEST_DELAY_S", 0.0)
    failures = [(500, {}, {}), (429, {}, {"Retry-After": "0"}), (200, b"{", {})]
    server.answer = lambda body, number: (
        failures[number // 3 % len(failures)] if number % 3 == 0 else reply(body)
    )
    options = ["--model", server.url, "--concurrency", 1, "--json"]
    assert read(document, QUESTION, *options) == 0
    told = found(capsys)
    assert told["answer"] == "Rex"
    assert {call["status"] for call in told["calls"]} == {"yes", "no", "done"}
    assert len(server.asked) > 1.4 * len(told["calls"])


def test_a_server_that_is_down_is_a_message_with_what_was_read_and_no_answer(
    server: Server,
    document: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trainers.policies.chat.LONGEST_DELAY_S", 0.0)
    monkeypatch.setattr("mars_envs.parallel_memory.drive.LONGEST_DELAY_S", 0.0)
    server.answer = lambda body, number: (503, {"error": "loading"}, {})
    assert read(document, QUESTION, "--model", server.url, "--concurrency", 1) == 2
    shown = capsys.readouterr()
    assert "calls failed, which is too many to answer" in shown.err
    assert "HTTP 503" in shown.err
    assert "answer " not in shown.out
    assert "Traceback" not in shown.err


def test_a_server_that_fails_for_every_reader_leaves_nothing_to_answer_from(
    server: Server,
    document: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trainers.policies.chat.LONGEST_DELAY_S", 0.0)
    monkeypatch.setattr("mars_envs.parallel_memory.drive.LONGEST_DELAY_S", 0.0)
    server.answer = lambda body, number: (
        (400, {"error": "too long"}, {}) if "<part" in str(body["messages"]) else reply(body)
    )
    assert read(document, QUESTION, "--model", server.url, "--chunk-tokens", 10**6) == 2
    assert "answer " not in capsys.readouterr().out


def test_an_answer_without_a_box_is_none(
    server: Server, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = {"message": {"content": "<check>no</check> Rex, I think."}, "finish_reason": "stop"}
    server.answer = lambda body, number: (200, {"choices": [choice]}, {})
    assert read(document, QUESTION, "--model", server.url) == 1
    shown = capsys.readouterr().out
    assert "no answer: there is no box in the reply" in shown
    assert "Rex, I think." in shown


def test_a_hugging_face_model_reads(
    tmp_path: Path, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: number for number, word in enumerate(["<unk>", "<end>", "yes", "no"])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", eos_token="<end>", pad_token="<end>"
    )
    config = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=2048,
        eos_token_id=1,
    )
    folder = tmp_path / "model"
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    options = [
        "--json",
        "--tokenizer",
        f"hf:{folder}",
        "--reply-tokens",
        4,
        "--max-turns",
        1,
        "--memory-tokens",
        8,
    ]
    assert read(document, QUESTION, "--model", folder, *options) == 1  # it says nothing of use
    told = found(capsys)
    assert told["answer"] == ""
    assert {call["status"] for call in told["calls"]} <= {"malformed", "empty", "done"}


def test_text_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, TEXT.encode())
    read("-", QUESTION, "--model", "lexical", "--json")
    told = found(capsys)
    assert told["n_chunks"] > 5


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("Zoë".encode("utf-16"), []),
        ("Zoë".encode("latin-1"), ["--encoding", "latin-1"]),
        (b"Zo\xff", ["--errors", "replace"]),
    ],
)
def test_standard_input_is_decoded_as_files_are(
    data: bytes,
    options: list[str],
    server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    standard_input(monkeypatch, data)
    assert read("-", QUESTION, "--model", server.url, *options) == 0
    assert "3 characters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"Zo\xff", [], "standard input: expected text in utf-8, got the byte 0xff at byte 2"),
        (b"Zo\xff", [], "--encoding), or have such bytes replaced"),
        (b"Zo", ["--encoding", "x"], "no encoding of text is called 'x'"),
        (None, [], "standard input is closed"),
    ],
)
def test_standard_input_that_is_no_text_is_refused(
    data: bytes | None,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if data is None:
        monkeypatch.setattr("sys.stdin", None)
    else:
        standard_input(monkeypatch, data)
    assert read("-", QUESTION, "--model", "lexical", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_that_a_model_or_a_document_says_steers_the_terminal(
    as_json: bool,
    server: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    attack = "\x1b[2J\x9b2J\x07\u202e"
    text = f"<check>yes</check> {FIRST} {attack} \\boxed{{{attack}Rex}}"
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    server.answer = lambda body, number: (200, {"choices": [choice]}, {})
    path = tmp_path / "olm.md"
    path.write_text(f"# Olm {attack}\n\n{FIRST} {attack}\n")
    read(path, QUESTION, "--model", server.url, "--max-turns", 1, *["--json"] * as_json)
    shown = capsys.readouterr().out
    assert "Rex" in shown
    assert not set(shown) & set(attack) - set("[2J")
    if as_json:
        assert attack in json.loads(shown)["answer"]


def test_a_server_cannot_steer_the_terminal_by_its_errors(
    server: Server, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda body, number: (401, b"\x1b[2J no", {})
    assert read(document, QUESTION, "--model", server.url) == 2
    shown = capsys.readouterr().err
    assert "HTTP 401" in shown
    assert "\x1b" not in shown


def test_malformed_replies_are_counted_and_shown(
    server: Server, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = {"message": {"content": "Well \\boxed{Rex}"}, "finish_reason": "stop"}
    server.answer = lambda body, number: (200, {"choices": [choice]}, {})
    options = [document, QUESTION, "--model", server.url, "--max-turns", 1]
    assert read(*options, "--json") == 0
    told = found(capsys)
    assert told["malformed"] == told["n_chunks"]
    read(*options)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{told['malformed']} of {len(told['calls'])} replies were malformed" in shown
    assert "--reply-tokens" in shown


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_a_document_without_text_is_answered_from_nothing(
    text: str, server: Server, document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document.write_text(text)
    assert read(document, QUESTION, "--model", server.url, "--json") == 0
    told = found(capsys)
    assert (told["answer"], told["memory"], told["evidence"]) == ("Rex", "", [])


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("olm.txt", "\n\n", "2 characters, 0 parts; lexical reads by pi_mem there is no text in"),
        ("olm.json", '[{"id": "0"}]', "choose one with --item (--item 0 is the first)"),
        ("olm.txt", "A.", "1 chunk read, something new in 0; memory 0 tokens"),
        ("olm.txt", "A.", "1 turn, ended because"),
    ],
)
def test_what_may_be_wrong_with_a_document_is_said_and_one_is_not_many(
    name: str, text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    read(tmp_path / name, QUESTION, "--model", "lexical")
    assert told in " ".join(capsys.readouterr().out.split())


def test_no_letter_of_a_wide_script_is_left_out_of_the_evidence(
    server: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passage = "奥尔姆的镇长叫作蒂娅诺尔她的狗叫作雷克斯" * 2
    text = f"<check>yes</check> {passage}\n\\boxed{{Rex}}"
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    server.answer = lambda body, number: (200, {"choices": [choice]}, {})
    (tmp_path / "olm.txt").write_text(passage, encoding="utf-8")
    monkeypatch.setattr("mars_envs.cli.read.console.width", 80)
    read(tmp_path / "olm.txt", QUESTION, "--model", server.url, "--max-turns", 1)
    rows = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert "".join(row.split("│")[-2].strip() for row in rows) == passage


def test_pages_and_sections_are_named(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "olm.md"
    path.write_text(f"# Animals\n\n{FILLER * 9}{SECOND}\n\n# Town\n\n{FILLER * 9}{FIRST}\n")
    assert read(path, QUESTION, "--model", server.url, "--json", "--max-turns", 1) == 0
    told = found(capsys)
    assert {(one["quotes"][0]["text"], *one["parts"]) for one in told["evidence"]} == {
        (FIRST, "Town"),
        (SECOND, "Animals"),
    }


@pytest.mark.data
@pytest.mark.parametrize("name", ["5a8b57f25542995d1e6f1371", "0"])
def test_an_item_of_hotpotqa_is_read_and_compared_with_its_answer(
    name: str, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = data_dir / "hotpotqa/hotpot_dev_distractor_head.json"
    read(file, "--item", name, "--model", "lexical", "--json", "--align", "document")
    told = found(capsys)
    record = json.loads(file.read_text())[0]
    assert record["_id"] == "5a8b57f25542995d1e6f1371"
    assert (told["question"], told["answers"]) == (record["question"], [record["answer"]])
    assert told["em"] == float(told["answer"].lower() == record["answer"])
    titles = {title for title, _ in record["context"]}
    assert {part for one in told["evidence"] for part in one["parts"]} <= titles
    read(file, "Who directed it?", "--item", name, "--model", "lexical")
    assert "gold yes (EM" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["kg2?tokens=1000&n=2", "--item", "7", "--model", "lexical"], "no item '7' among 2"),
        (["missing.txt", "Who?", "--model", "lexical"], "missing.txt"),
        (["olm.txt", " ", "--model", "lexical"], "the question is empty"),
        ([".", "Who?", "--model", "lexical"], ". is a folder: name a file or"),
        (["olm.txt", "Who?", "--model", "no/such/folder"], "no model folder"),
        (["olm.txt", "Who?", "--model", "http://"], "expected an address"),
        (["olm.txt", "Who?", "--model", "lexical", "--prompts", "x"], "unknown prompts 'x'"),
        (["olm.txt", "Who?", "--model", "lexical", "--prompts", "./x.py"], "mine for mine.py"),
        (["olm.txt", "Who?", "--model", "lexical", "--tokenizer", "gpt2"], "'hf:NAME-OR-FOLDER'"),
        (
            ["olm.txt", "Who?", "--model", "lexical", "--settings", "max_note=3"],
            "--settings: unknown settings ['max_note'] (did you mean max_notes?)",
        ),
        (
            ["olm.txt", "Who?", "--model", "lexical", "--settings", "max_turns=3"],
            "--settings: max_turns has an option of its own, --max-turns",
        ),
        (
            ["olm.txt", "Who?", "--model", "lexical", "--settings", "strict=maybe"],
            "--settings: strict is True or False, got 'maybe'",
        ),
    ],
)
def test_what_cannot_work_is_said_in_one_line(
    options: list[str],
    message: str,
    document: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(document.parent)
    assert read(*options) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("mars-envs: ")
    assert message in shown
    assert len(shown.splitlines()) == 1


def test_the_help_says_how_tokenizers_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["read", "--help"])
    assert "`hf:` and the folder or name of a Hugging Face" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_model_has_to_be_named(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(document, QUESTION)
    assert "model" in capsys.readouterr().err
