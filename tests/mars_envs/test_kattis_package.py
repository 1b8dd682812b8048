from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import CodeTask, ExpectedCase, OutputRule, ScoringGroup, load_tasks
from mars_envs.tasks.submissions import Submission, read_submissions

FILES = {
    "problem.yaml": "name: Adding up\nsource: A Contest 2024\nlicense: cc by-sa\n",
    "problem_statement/problem.en.tex": "Add $a$ and $b$.\n",
    "problem_statement/problem.sv.md": "Addera $a$ och $b$.\n",
    "data/sample/1.in": "1 2\n",
    "data/sample/1.ans": "3\n",
    "data/secret/02-big.in": "5 5\n",
    "data/secret/02-big.ans": "10\n",
    "data/secret/01.in": "2 2\n",
    "data/secret/01.ans": "4\n",
    ".timelimit": "2\n",
    "submissions/accepted/good.py": "print(sum(map(int, input().split())))\n",
    "submissions/accepted/fast.cpp": "int main() {}\n",
    "submissions/wrong_answer/bad.py": "print(0)\n",
}


def package(folder: Path, *, without: tuple[str, ...] = (), **files: str) -> Path:
    """Write a package; keywords name files with `__` for `/` and `_DOT_` for a dot."""
    changed = {key.replace("__", "/").replace("_DOT_", "."): text for key, text in files.items()}
    for name, text in (FILES | changed).items():
        if name not in without:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


def zipped(folder: Path, target: Path, *, inside: str = "") -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink():
                info = zipfile.ZipInfo(inside + path.relative_to(folder).as_posix())
                info.external_attr = 0o120777 << 16
                archive.writestr(info, str(path.readlink()))
            elif path.is_file():
                archive.write(path, inside + path.relative_to(folder).as_posix())
    return target


TASK = CodeTask(
    task_id="addingup",
    statement="Add $a$ and $b$.\n\nSample input 1:\n1 2\n\nSample output 1:\n3\n",
    public=(ExpectedCase(name="sample/1", input="1 2\n", expected="3\n"),),
    hidden=(
        ExpectedCase(name="secret/01", input="2 2\n", expected="4\n"),
        ExpectedCase(name="secret/02-big", input="5 5\n", expected="10\n"),
    ),
    rule=OutputRule(kind="tokens", case_sensitive=False),
    time_limit_s=2.0,
    memory_mb=1024,
    meta={"name": "Adding up", "contest": "A Contest 2024", "licence": "cc by-sa"},
)


def test_a_package_is_a_task(tmp_path: Path) -> None:
    folder = package(tmp_path / "addingup")
    assert load_tasks(folder) == (TASK,)


@pytest.mark.parametrize("inside", ["", "addingup/", "contest/addingup/"])
def test_a_package_may_be_an_archive(tmp_path: Path, inside: str) -> None:
    folder = package(tmp_path / "addingup")
    assert load_tasks(zipped(folder, tmp_path / "addingup.zip", inside=inside)) == (TASK,)


def test_a_folder_or_an_archive_may_hold_many_packages(tmp_path: Path) -> None:
    for name in ("2023/b", "2023/a", "2024/a"):
        package(tmp_path / "contests" / name)
    names = ["2023/a", "2023/b", "2024/a"]
    tasks = load_tasks(tmp_path / "contests")
    assert [task.task_id for task in tasks] == names
    archived = load_tasks(zipped(tmp_path / "contests", tmp_path / "all.zip"))
    assert [task.task_id for task in archived] == [f"all/{name}" for name in names]


def test_the_language_of_the_statement_can_be_chosen(tmp_path: Path) -> None:
    folder = package(tmp_path / "p")
    assert load_tasks(folder, language="sv")[0].statement.startswith("Addera")
    assert load_tasks(folder, language="fi")[0].statement.startswith("Add $a$")
    (folder / "problem_statement" / "problem.en.tex").rename(
        folder / "problem_statement" / "problem.tex"
    )
    assert load_tasks(folder)[0].statement.startswith("Add $a$")
    (folder / "problem_statement" / "problem.tex").unlink()
    assert load_tasks(folder)[0].statement.startswith("Addera")


def test_newer_names_of_folders_and_limits_are_read_too(tmp_path: Path) -> None:
    without = ("problem_statement/problem.en.tex", "problem_statement/problem.sv.md", ".timelimit")
    folder = package(
        tmp_path / "p",
        without=without,
        problem_DOT_yaml="name:\n  en: Sum\n  sv: Summa\nlimits:\n  time_limit: 3\n  memory: 256\n",
        statement__problem_DOT_en_DOT_md="Add.\n",
    )
    task = load_tasks(folder, language="sv")[0]
    assert (task.meta["name"], task.time_limit_s, task.memory_mb) == ("Summa", 3.0, 256)
    assert task.statement.startswith("Add.")


def test_a_package_that_publishes_no_time_limit_has_ten_seconds(tmp_path: Path) -> None:
    assert load_tasks(package(tmp_path / "p", without=(".timelimit",)))[0].time_limit_s == 10.0


def test_validator_flags_become_the_rule(tmp_path: Path) -> None:
    folder = package(
        tmp_path / "p", problem_DOT_yaml="name: P\nvalidator_flags: float_tolerance 1e-6\n"
    )
    rule = OutputRule(kind="tokens", case_sensitive=False, float_abs=1e-6, float_rel=1e-6)
    assert load_tasks(folder)[0].rule == rule
    (folder / "data" / "testdata.yaml").write_text("output_validator_flags: case_sensitive\n")
    assert load_tasks(folder)[0].rule == OutputRule(kind="tokens")


def test_groups_give_points_and_links_lead_to_earlier_tests(tmp_path: Path) -> None:
    folder = package(
        tmp_path / "p",
        without=tuple(name for name in FILES if name.startswith("data/secret")),
        problem_DOT_yaml="name: P\ntype: scoring\n",
        data__sample__testdata_DOT_yaml="accept_score: 0\n",
        data__secret__group1__testdata_DOT_yaml="on_reject: break\naccept_score: 40\n",
        data__secret__group1__a_DOT_in="1 1\n",
        data__secret__group1__a_DOT_ans="2\n",
        data__secret__group2__testdata_DOT_yaml="accept_score: 60\n",
        data__secret__group2__b_DOT_in="9 9\n",
        data__secret__group2__b_DOT_ans="18\n",
    )
    for end in ("in", "ans"):
        (folder / f"data/secret/group2/a.{end}").symlink_to(f"../group1/a.{end}")
    groups = (
        ScoringGroup(name="secret/group1", points=40.0, tests=("secret/group1/a",)),
        ScoringGroup(
            name="secret/group2", points=60.0, tests=("secret/group2/a", "secret/group2/b")
        ),
    )
    for source in (folder, zipped(folder, tmp_path / "p.zip")):
        task = load_tasks(source)[0]
        assert task.groups == groups
        assert task.hidden[1] == ExpectedCase(name="secret/group2/a", input="1 1\n", expected="2\n")


def test_a_link_may_not_lead_out_of_its_package(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("of the host")
    folder = package(tmp_path / "p", without=("data/secret/01.in",))
    (folder / "data" / "secret" / "01.in").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InvalidTask, match=r"p/data/secret/01.in: expected a link to a file of the"):
        load_tasks(folder)
    for target in ("../../../secret.txt", "/etc/passwd", "nothing.in"):
        (folder / "data" / "secret" / "01.in").unlink()
        (folder / "data" / "secret" / "01.in").symlink_to(target)
        with pytest.raises(InvalidTask, match=r"01.in: expected a link to a file of the package"):
            load_tasks(zipped(folder, tmp_path / "p.zip"))


VALIDATOR = """
import sys

def main():
    with open(sys.argv[1]) as file:
        total = int(file.read().split()[0])
    parts = sys.stdin.read().split()
    assert sys.argv[3].endswith("/") and sys.argv[4:] == ["strict"]
    sys.exit(42 if len(parts) == 2 and sum(map(int, parts)) == total else 43)

if __name__ == "__main__":
    main()
"""
CUSTOM = "name: P\nvalidation: custom\nvalidator_flags: strict\n"


def test_an_output_validator_in_python_becomes_the_checker(tmp_path: Path) -> None:
    task = load_tasks(
        package(
            tmp_path / "p",
            problem_DOT_yaml=CUSTOM,
            output_validators__check_DOT_py=VALIDATOR,
        )
    )[0]
    space: dict[str, object] = {}
    exec(task.checker, space)
    check = space["check"]
    assert callable(check)
    assert check("9\n", "4 5\n", "3 6\n")
    assert not check("9\n", "4 4\n", "3 6\n")
    assert not check("9\n", "four 5\n", "3 6\n")  # it breaks on this output, but is no broken one
    with pytest.raises(ValueError, match=r"ended with .*invalid literal.*not with 42 or 43"):
        check("9\n", "four 5\n", "3 7\n")


def test_the_submissions_of_a_package_carry_the_verdict_of_their_folder(tmp_path: Path) -> None:
    folder = package(tmp_path / "addingup")
    assert list(read_submissions(folder)) == [
        Submission(
            task_id="addingup",
            name="addingup/accepted/good.py",
            text=FILES["submissions/accepted/good.py"],
            recorded="AC",
        ),
        Submission(
            task_id="addingup",
            name="addingup/wrong_answer/bad.py",
            text="print(0)\n",
            recorded="WA",
        ),
    ]


@contextmanager
def refused(message: str) -> Iterator[None]:
    with pytest.raises(InvalidTask, match=message):
        yield


def test_a_bad_package_is_named_with_its_fault(tmp_path: Path) -> None:
    def load(number: int, *, without: tuple[str, ...] = (), **files: str) -> CodeTask:
        return load_tasks(package(tmp_path / f"p{number}", without=without, **files))[0]

    with refused(r"p1/data/secret/01.ans: expected the right answer to data/secret/01.in"):
        load(1, without=("data/secret/01.ans",))
    with refused(r"p2/data: expected tests .* in sample/ or secret/"):
        load(2, without=tuple(name for name in FILES if name.startswith("data")))
    with refused(r"p3/problem_statement: expected a statement, problem.LANGUAGE.tex or .md"):
        load(3, without=tuple(name for name in FILES if name.startswith("problem_statement")))
    with refused(r"p4/problem.yaml: expected YAML \(.*; correct it"):
        load(4, problem_DOT_yaml="name: [")
    with refused(r"p5/problem.yaml: expected keys with values"):
        load(5, problem_DOT_yaml="- a\n")
    with refused(r"p6/problem.yaml: .* problems with validation `custom interactive` cannot be"):
        load(6, problem_DOT_yaml="name: P\nvalidation: custom interactive\n")
    with refused(r"p7/output_validators: expected one output validator in one file of Python, got"):
        load(7, problem_DOT_yaml=CUSTOM, output_validators__v__v_DOT_cpp="int main() {}")
    with refused(r"p8/data: expected the same `output_validator_flags` in every testdata.yaml"):
        load(
            8,
            data__sample__testdata_DOT_yaml="output_validator_flags: a\n",
            data__secret__testdata_DOT_yaml="output_validator_flags: b\n",
        )
    with refused(r"p9/.timelimit: expected a number of seconds, got 'soon'"):
        load(9, _DOT_timelimit="soon")
    with refused(r"p10, field `checker.flags`: expected validator flags .*remove 'quickly'"):
        load(10, problem_DOT_yaml="name: P\nvalidator_flags: quickly\n")
    folder = package(tmp_path / "p11")
    (folder / "data" / "sample" / "1.in").write_bytes(b"\xff")
    with refused(r"p11/data/sample/1.in: expected UTF-8 text"):
        load_tasks(folder)


def test_bad_packages_among_good_ones_can_be_skipped(tmp_path: Path) -> None:
    package(tmp_path / "all" / "bad", without=("data/secret/01.ans",))
    package(tmp_path / "all" / "good")
    assert [task.task_id for task in load_tasks(tmp_path / "all", on_error="skip")] == ["good"]


def damaged(folder: Path, target: Path, *, at: int, by: bytes) -> Path:
    """Pack a folder, then overwrite bytes in both headers of its `problem.yaml`.

    Args:
        folder: to be packed.
        target: the archive.
        at: where, from the start of the header in front of the file (PKZIP APPNOTE 4.3.7); the one
            in the directory at the end has two bytes more before it (4.3.12).
        by: the new bytes.
    """
    with zipfile.ZipFile(zipped(folder, target)) as archive:
        local = archive.getinfo("problem.yaml").header_offset
    data = bytearray(target.read_bytes())
    name = data.rindex(b"problem.yaml")
    central = data.rindex(b"PK\x01\x02", 0, name)
    data[local + at : local + at + len(by)] = by
    data[central + at + 2 : central + at + 2 + len(by)] = by
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(
    ("at", "by", "message"),
    [
        (6, b"\x01\x00", r"z.zip/problem.yaml: expected a readable file \(.*is encrypted"),
        (8, b"\x63\x00", r"z.zip/problem.yaml: expected a readable file \(That compression method"),
        (4, b"\xeb\x00", r"z.zip: expected a zip archive of .* \(zip file version 23.5\)"),
    ],
    ids=["encrypted", "an unknown compression", "a version to come"],
)
def test_an_archive_that_cannot_be_unpacked_is_named_and_skipped(
    tmp_path: Path, at: int, by: bytes, message: str
) -> None:
    folder = package(tmp_path / "p")
    archive = damaged(folder, tmp_path / "z.zip", at=at, by=by)
    with refused(message):
        load_tasks(archive)
    assert [task.task_id for task in load_tasks(tmp_path, on_error="skip")] == ["p"]


def test_damage_to_one_package_of_an_archive_leaves_the_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        package(tmp_path / "all" / name)
    path = zipped(tmp_path / "all", tmp_path / "all.zip")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Add $a$", b"Odd $a$", 1))  # its checksum is wrong now
    with refused(r"all.zip/a/problem_statement/problem.en.tex: expected a readable file \(Bad CRC"):
        load_tasks(path)
    assert [task.task_id for task in load_tasks(path, on_error="skip")] == ["all/b"]


@pytest.mark.parametrize(
    "text",
    [
        "license: 2020-13-45\n",
        f"limits: {{memory: {'9' * 5000}}}\n",
        f"name: {'[' * 3000}{']' * 3000}\n",
        "name: !!timestamp soon\n",
        "name: !!bool perhaps\n",
    ],
    ids=["a date", "a number", "nesting", "no date", "no boolean"],
)
def test_yaml_with_values_that_cannot_be_is_named(tmp_path: Path, text: str) -> None:
    with refused(r"p/problem.yaml: expected YAML \(.*; correct it"):
        load_tasks(package(tmp_path / "p", problem_DOT_yaml=text))


def test_flags_that_are_no_words_are_not_written_out(tmp_path: Path) -> None:
    """A few lines of aliases stand for ten thousand million entries."""
    bomb = "a0: &a0 x\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 11)
    )
    with refused(r"p/problem.yaml: expected words as `validation`, got a list of 10; correct it"):
        load_tasks(package(tmp_path / "p", problem_DOT_yaml=f"{bomb}validation: *a10\n"))


def test_folders_of_tests_may_be_nested_deeper_than_calls(tmp_path: Path) -> None:
    path = zipped(package(tmp_path / "p"), tmp_path / "p.zip")
    deep = "a/" * 1500
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"data/secret/{deep}1.in", "7 7\n")
        archive.writestr(f"data/secret/{deep}1.ans", "14\n")
    assert load_tasks(path)[0].hidden[-1] == ExpectedCase(
        name=f"secret/{deep}1", input="7 7\n", expected="14\n"
    )


def test_a_link_to_itself_is_named(tmp_path: Path) -> None:
    folder = package(tmp_path / "p", without=("data/secret/01.in",))
    (folder / "data" / "secret" / "01.in").symlink_to("01.in")
    with refused(r"p/data/secret/01.in: expected a readable file \(Too many levels of symbolic"):
        load_tasks(folder)


def test_a_number_too_long_to_be_written_out_is_named(tmp_path: Path) -> None:
    text = f"limits: {{memory: 0x{'f' * 5000}}}\n"
    with refused(r"field `memory_mb`: expected a number above 0, got a whole number of 20000 bits"):
        load_tasks(package(tmp_path / "p", problem_DOT_yaml=text))
