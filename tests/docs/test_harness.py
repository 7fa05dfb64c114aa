"""The tests of the docs, tested on a small page that is right, and on pages that are not."""

from pathlib import Path

import pytest

from tests.docs.checks import faults
from tests.docs.commands import command_faults, span_faults, split_script
from tests.docs.pages import Page, read_page
from tests.docs.record import PageError, record, run_page
from tests.docs.recording import (
    Entry,
    differences,
    is_rounding,
    quotes,
    read_recording,
    recording_path,
    write_recording,
)
from tests.drone.harness import wait_for

PAGE = """# A page

It takes `7.7 s` and 6.6 mm, 0.2 of it for 1 234 points, as [another](other.md#a-heading) says.

```sh
echo 6.594 mm
printf 'a %s\\n' \\
    1234
```

```text
6.594 mm
...
a 1234
```

```sh long
echo long
```

```sh needs="a drone"
influx-calib drone plan canon17 --lfl-mm 17 --fd-m 13.5 --lat 1 --lon 2 \\
    --heading-deg 3 --tilt-deg 4 --out p
```

```sh exit=3
sh -c 'echo no; exit 3'
```

| n | |
|---|---|
| 3 | three |

<!-- given: 0.2 -->
"""


def write(folder: Path, text: str) -> Page:
    docs = folder / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "other.md").write_text("# A heading\n")
    (docs / "page.md").write_text(text)
    return read_page(docs / "page.md")


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """The page, recorded."""
    made = write(tmp_path, PAGE)
    assert record(made, tmp_path / "build") == []
    return made


def test_a_right_page_has_no_faults(page: Page) -> None:
    assert faults(page) == []
    assert recording_path(page).read_text() == (
        "$ echo 6.594 mm\n6.594 mm\n"
        "$ printf 'a %s\\n' \\\n>     1234\na 1234\n"
        "$ echo long\nlong\n"
        "$ sh -c 'echo no; exit 3'\nno\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("6.6 mm", "6.7 mm", "6.7 was printed by no command"),
        ("| 3 |", "| 4 |", "4 was printed by no command"),
        ("given: 0.2", "given: 0.3", "0.2 was printed by no command"),
        ("...\na 1234", "...\na 1235", "no command of the page has printed this"),
        ("other.md#a-heading", "other.md#a-place", "no heading for #a-place"),
        ("other.md#a-heading", "else.md", "else.md does not exist"),
        ("--tilt-deg", "--tilt", "No such option"),
        ("echo long", "echo short", "not recorded"),
        ("echo 6.594 mm\n", "", "recorded in another order"),
        ("```text\n6.5", "```\nmake test\n```\n\n```text\n6.5", "marked sh"),
        ("```text\n6.5", "```python\nimport\n```\n\n```text\n6.5", "not Python"),
        ("`7.7 s`", "`influx-calib plan --nothing`", "there is no option --nothing"),
    ],
)
def test_a_fault_is_found(page: Page, tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in PAGE
    assert any(said in fault for fault in faults(write(tmp_path, PAGE.replace(old, new, 1))))


def test_a_recording_tells_nothing_of_the_machine(page: Page) -> None:
    entries = read_recording(recording_path(page))
    entries[0] = Entry(entries[0].command, "6.594 mm\nwritten: /home/somebody/x\n")
    write_recording(recording_path(page), entries)
    assert any("tells of a machine" in fault for fault in faults(page))


def test_long_blocks_are_run_alone_or_left_out(page: Page, tmp_path: Path) -> None:
    path = recording_path(page)
    right = path.read_text()
    path.write_text(right.replace("long\nlong", "long\nkept").replace("a 1234", "b 1234"))
    (change,) = record(page, tmp_path / "build", "no")
    assert "recorded: b 1234" in change
    assert path.read_text() == right.replace("long\nlong", "long\nkept")
    path.write_text(right.replace("long\nlong", "long\nold").replace("a 1234", "b 1234"))
    (change,) = record(page, tmp_path / "build", "echo l")
    assert "recorded: old" in change
    assert path.read_text() == right.replace("a 1234", "b 1234")


def test_an_exit_code_other_than_the_one_told_is_a_fault(tmp_path: Path) -> None:
    page = write(tmp_path, "```sh exit=2\necho no\nfalse\n```\n")
    with pytest.raises(PageError, match=r"page\.md: exit code .*\n\$ false"):
        run_page(page, tmp_path / "build", lambda block: True)


def test_the_output_tells_no_place_and_keeps_the_last_state_of_a_bar(tmp_path: Path) -> None:
    page = write(tmp_path, "```sh\npwd\nprintf '10 %%\\r\\033[1m20 %%\\033[0m\\n'\n```\n")
    entries = run_page(page, tmp_path / "build", lambda block: True)
    assert [entry.output for entry in entries] == [".\n", "20 %\n"]


def test_processes_in_the_background_end_with_their_page(tmp_path: Path) -> None:
    page = write(tmp_path, "```sh\nsleep 600 &\necho $! > pid\n```\n")
    run_page(page, tmp_path / "build", lambda block: True)
    pid = int((tmp_path / "build" / "page" / "pid").read_text())
    status = Path(f"/proc/{pid}/stat")
    wait_for(lambda: not status.exists() or status.read_text().split()[2] == "Z")


def test_a_script_is_split_into_whole_commands() -> None:
    script = "# why\nfor x in a b; do\n  echo $x\ndone\n\ncat <<E\nx\nE\necho a \\\n  b\n"
    assert split_script(script) == [
        "for x in a b; do\n  echo $x\ndone",
        "cat <<E\nx\nE",
        "echo a \\\n  b",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "influx-calib --catalogue mine plan canon17 > plan.txt 2>&1 &",
        "A=1 .venv/bin/influx-calib lut --help | head",
        "kalibr_bagcreater --folder a --output-bag b.bag && make calibrate LENS=canon17",
        "python -m benchmarks --only led",
        "for i in 1 2; do influx-drone-server --dry-run --state $i; done",
        "some-other-program --with-anything",
    ],
)
def test_commands_that_exist(command: str) -> None:
    assert list(command_faults(command)) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("influx-calib plot", "no command"),
        ("influx-calib plan canon17 --lense x", "No such option"),
        ("influx-calib plan canon17 z3f2", "one word too many"),
        ("influx-calib simulate canon17", "--out is missing"),
        ("influx-calib plan", "lens is missing"),
        ("influx-calib run canon17 --recipe stok", "stok"),
        ("kalibr_bagcreater --output-bag a.bag", "--folder"),
        ("sudo influx-drone-server --gsp x", "--gsp"),
        ("python -m benchmarks --only lead", "lead"),
        ("make calibrat", "the Makefile has no calibrat"),
        ("make calibrate LENSE=canon17", "the Makefile has no LENSE"),
    ],
)
def test_commands_that_do_not(command: str, said: str) -> None:
    (fault,) = command_faults(command)
    assert said in fault


def test_commands_in_running_text() -> None:
    assert not list(span_faults("influx-calib lut build|query … --out FILE"))
    assert not list(span_faults("--anything"))
    assert len(list(span_faults("influx-calib lut build|quarry"))) == 1


@pytest.mark.parametrize(
    ("number", "printed", "right"),
    [
        ("6.6", 6.594, True),
        ("6.5", 6.594, False),
        ("17800", 17812.0, True),
        ("17800", 17751.0, True),
        ("17800", 17860.0, False),
        ("100", 104.0, True),
        ("100", 94.0, False),
        ("0.35", -0.35, True),
        ("-0.35", -0.35, True),
        ("-0.35", 0.35, False),
        ("1.0e8", 104e6, True),
        ("4e-9", 5e-9, False),
    ],
)
def test_rounding(number: str, printed: float, right: bool) -> None:
    assert is_rounding(number, [printed]) is right


def test_quotes() -> None:
    printed = "a\nb   \nc\nd\n"
    assert quotes(printed, "b\nc\n")
    assert quotes(printed, "a\n...\nd\n")
    assert not quotes(printed, "a\nc\n")
    assert not quotes(printed, "d\n...\na\n")


@pytest.mark.parametrize(
    ("recorded", "now", "same"),
    [
        ("80 cells ok, 126 s", "80 cells ok, 9.5 s", True),
        ("80 cells ok, 126 s", "79 cells ok, 126 s", False),
        ("z3f2 failed", "z3f3 failed", False),
        ("in 1 sigma 70 %", "in 1 sigma 71 %", True),
        ("in 1 sigma 70 %", "in 1 sigma 72 %", False),
        ("cx -0.00", "cx +0.00", True),
        ("cx -0.20", "cx +0.20", False),
        ("a", "a\nand more", False),
        ("fx 0.52  ───", "fx   0.53 ─────", True),
        ("fx 0.52", "fx 0.54", False),
        ("seconds per frame    0.4", "seconds per frame   0.05", True),
        ("p1 1.2e-05", "p1 1.3e-05", True),
        ("p1 1.2e-05", "p1 1.2e-04", False),
        ("status ok", "status failed", False),
    ],
)
def test_what_counts_as_a_difference(recorded: str, now: str, same: bool) -> None:
    assert (not list(differences(Entry("x", recorded), Entry("x", now)))) is same


def test_commands_that_another_page_runs(page: Page) -> None:
    docs = page.path.parent
    (docs / "quoting.md").write_text(
        '# Quoting\n\n```sh as-in="page.md"\necho long\n```\n\n```text\nlong\n```\n\n6.59 mm\n'
    )
    quoting = read_page(docs / "quoting.md")
    assert quoting.own_scripts == ()
    assert faults(quoting) == []
    (docs / "quoting.md").write_text('# Q\n\n```sh as-in="page.md"\necho short\n```\n')
    assert faults(read_page(docs / "quoting.md")) == [
        "quoting.md:3: page.md does not run echo short"
    ]
