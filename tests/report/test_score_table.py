"""Tables of scores say what the evaluations say, whatever the methods are called."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.evaluate.epe_counts import EpeHistogram
from influx_wrap.evaluate.score import Evaluation, Score
from influx_wrap.report.score_table import (
    in_order,
    latex_escape,
    numbers,
    one_line,
    score_csv,
    score_latex,
    score_table,
    shown,
)
from tests.report.scored import NASTY, NO_FRAMES, made_up

GOOD, BAD, SILENT = made_up("good", 0.02), made_up(NASTY, 0.3, seed=1), made_up("silent", None)
LATIN = "[1] Übung -- a*b `q` |x| \"y\" <script> 50% $x_1$ {a}\\b #~^ & 'z'"


def of_numbers(percent: list[float], below: int, of: int, method: str = "m") -> Evaluation:
    """With ``below`` of ``of`` pairs under the threshold, the others right on it."""
    counts = np.zeros(3001, dtype=np.int64)
    counts[2999], counts[3000] = below, of - below
    score = Score(of, of, np.array(percent), EpeHistogram(counts, 0, 0))
    return replace(GOOD, method=method, overall=score, intervals={})


# The paper's table: per-cent errors, and pairs below 300 px of a thousand or ten thousand.
PAPER = [
    of_numbers([1270, 1280, 0.112, 0.299], 785, 10000, "COLMAP"),
    of_numbers([45.6, 46.9, 5.04, 6.39], 472, 1000, "WildCamera"),
    of_numbers([56.5, 56.5, 0.0988, 0.204], 529, 1000, "GeoCalib"),
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (100.0, "100"), (56.49, "56.5"), (0.0988, "0.0988"), (7.849, "7.85"),
        (1270.4, "1270"), (9.999, "10.0"), (0.9996, "1.00"), (99.96, "100"), (99999.0, "1.00e5"),
        (0.001, "0.00100"), (0.00099, "9.90e-4"), (3e-12, "3.00e-12"), (4.2e300, "4.20e300"),
        (math.nan, "–"), (math.inf, "∞"),
    ],
)  # fmt: skip
def test_three_digits(value: float, text: str) -> None:
    assert shown(value) == text


def test_the_papers_table() -> None:
    lines = score_table(PAPER).splitlines()
    assert re.split(r"  +", lines[0]) == [
        "Method", "% fx error", "% fy error", "% cx error", "% cy error", "% EPE < 300 px ↑",
        "frames predicted",
    ]  # fmt: skip
    assert [line.split() for line in lines[2:5]] == [
        ["GeoCalib", "56.5", "56.5", "0.0988", "0.204", "52.9", "1000", "of", "1000"],
        ["WildCamera", "45.6", "46.9", "5.04", "6.39", "47.2", "1000", "of", "1000"],
        ["COLMAP", "1270", "1280", "0.112", "0.299", "7.85", "10000", "of", "10000"],
    ]
    assert len({len(line) for line in lines[:5]}) == 1, "columns are aligned"
    assert "builtin" in lines[6]
    assert "3424 x 2202 px" in lines[6]
    assert "1000 frames of 7 videos" in lines[6]


def test_an_error_of_the_threshold_is_not_below_it() -> None:
    assert numbers(of_numbers([1] * 4, 3, 4).overall)[-1] == 75.0


def test_settings_that_differ_are_said_of_each() -> None:
    assert score_table([GOOD, BAD]).count("builtin") == 1
    text = score_table([GOOD, replace(SILENT, subsample=5, points_source="eth3d")])
    assert "good: 540 frames of 7 videos" in text
    assert re.search(r"silent: .*\(eth3d\), of one frame in 5\.", text)


def test_intervals_are_shown_on_request() -> None:
    assert "[" not in score_table([GOOD, SILENT])
    lines = score_table([GOOD, SILENT, PAPER[0]], intervals=True).splitlines()
    second = lines[next(k for k, line in enumerate(lines) if line.startswith("good")) + 1]
    assert re.findall(r"\[.*?\]", second) == ["[0.500, 1230]"] * 4 + ["[41.2, 63.5]"]
    after_colmap = lines[next(k for k, line in enumerate(lines) if line.startswith("COLMAP")) + 1]
    assert "[" not in after_colmap, "of few videos there are none"


def test_names_stay_on_their_line() -> None:
    broken = replace(GOOD, method="a\nb\x1b[31m\ud800\u202ec\t")
    for text in (score_table([broken]), score_csv([broken]), score_latex([broken])):
        assert "a b [31m  c" in text.replace("{[}", "[")
        text.encode()
    wide, narrow = score_table([replace(GOOD, method="日本語"), BAD]).splitlines()[2:4]
    assert len(wide) + 3 == len(narrow) + 2, "wide characters take two columns"


def test_csv_has_all_numbers_as_they_are() -> None:
    rows = list(csv.DictReader(io.StringIO(score_csv([BAD, SILENT, GOOD]))))
    assert [row["method"] for row in rows if row["by"] == "overall"] == ["good", NASTY, "silent"]
    expected = {}
    for evaluation in (GOOD, BAD, SILENT):
        expected[evaluation.method, "overall", ""] = evaluation.overall
        for by, scores in {**evaluation.groups, "video": evaluation.videos}.items():
            for value, score in scores.items():
                expected[evaluation.method, by, value] = score
    assert len(rows) == len(expected) == 3 * (1 + 3 + 7)
    for row in rows:
        score = expected[row["method"], row["by"], row["value"]]
        assert int(row["frames"]) == score.frames
        assert int(row["predicted_frames"]) == score.predicted_frames
        assert int(row["pairs"]) == score.histogram.n
        read = [float(row[f"{name}_error_percent"] or "nan") for name in ("fx", "fy", "cx", "cy")]
        np.testing.assert_array_equal(read, score.percent_error)
        below = float(row["epe_below_300_percent"] or "nan")
        np.testing.assert_equal(below, 100 * score.histogram.share_below(300))
        assert (row["points"], row["n_points"]) == ("builtin", "20")
    assert [rows[0][f"cx_error_percent_{end}"] for end in ("low", "high")] == ["0.5", "1234.0"]
    assert [rows[0][f"epe_below_300_percent_{end}"] for end in ("low", "high")] == ["41.25", "63.5"]
    assert rows[1]["epe_below_300_percent_low"] == "", "groups have no intervals"
    empty = next(row for row in rows if row["value"] == NO_FRAMES)
    assert (empty["frames"], empty["fx_error_percent"], empty["epe_below_300_percent"]) == (
        "0", "", "",
    )  # fmt: skip


def latex_rows(text: str) -> list[list[str]]:
    body = text[text.index(r"\midrule") + len(r"\midrule") : text.index(r"\bottomrule")]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]
        for line in body.strip().splitlines()
    ]


def test_latex_has_the_best_in_bold() -> None:
    assert latex_rows(score_latex(PAPER)) == [
        ["GeoCalib", "56.5", "56.5", r"\textbf{0.0988}", r"\textbf{0.204}", r"\textbf{52.9}",
         "1000 of 1000"],
        ["WildCamera", r"\textbf{45.6}", r"\textbf{46.9}", "5.04", "6.39", "47.2", "1000 of 1000"],
        ["COLMAP", "1270", "1280", "0.112", "0.299", "7.85", "10000 of 10000"],
    ]  # fmt: skip
    assert r"\textbf{56.5}" not in score_latex(PAPER[2:]), "alone it is not the best"
    equal = [replace(PAPER[2], method="b"), PAPER[2]]
    assert score_latex(equal).count(r"\textbf{56.5}") == 4, "equals are all the best"
    silent = latex_rows(score_latex([SILENT, PAPER[1]]))
    assert silent[1] == ["silent", "--", "--", "--", "--", "0", "0 of 540"]
    endless = of_numbers([math.inf] * 4, 1, 2)
    assert latex_rows(score_latex([endless, PAPER[1]]))[0][1] == r"$\infty$"


def test_latex_escapes() -> None:
    assert latex_escape(r"50% $x_1$ {a}\b #~^ &") == (
        r"50\% \$x\_1\$ \{a\}\textbackslash{}b \#\textasciitilde{}\textasciicircum{} \&"
    )
    assert latex_escape("[a]---*") == "{[}a]-{}-{}-{*}"
    assert latex_escape("e\u0301") == "é"
    cells = latex_rows(score_latex([replace(GOOD, method=NASTY), SILENT]))[0]
    assert len(cells) == 7
    assert "lualatex" not in score_latex([replace(GOOD, method=LATIN)])
    assert "lualatex" in score_latex([replace(GOOD, method="日本")])


def test_nothing_to_show() -> None:
    assert score_table([]).startswith("Method")
    assert len(score_csv([]).splitlines()) == 1
    assert latex_rows(score_latex([])) == []
    assert in_order([]) == []
    assert one_line(" a ") == "a"


@pytest.mark.system
def test_latex_compiles(tmp_path: Path) -> None:
    """With Debian's LaTeX; and what the page then says is what the table says."""
    pdfium = pytest.importorskip("pypdfium2")
    pdflatex = shutil.which("pdflatex")
    assert pdflatex is not None, "Debian's package texlive-latex-recommended is needed"
    evaluations = [*PAPER, replace(GOOD, method=LATIN), SILENT, of_numbers([math.inf] * 4, 0, 1)]
    table = score_latex(evaluations, intervals=True)
    (tmp_path / "table.tex").write_text(table, encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage[margin=1cm,landscape]{geometry}"
        r"\usepackage{booktabs}\pagestyle{empty}\begin{document}\input{table}\end{document}"
    )
    done = subprocess.run(
        [pdflatex, "-halt-on-error", "-interaction=nonstopmode", "paper.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    document = pdfium.PdfDocument(tmp_path / "paper.pdf")
    text = document[0].get_textpage().get_text_range()
    document.close()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "GeoCalib 56.5 56.5 0.0988 0.204 52.9 1000 of 1000" in lines
    assert "COLMAP 1270 1280 0.112 0.299 7.85 10000 of 10000" in lines
    assert any("script" in line and "50% $x" in line and "{a}" in line for line in lines)
    assert any(line.startswith("silent") and line.endswith("0 0 of 540") for line in lines)
