"""Scores as a table like the paper's ("Baseline Method Results"): text, CSV and LaTeX.

Methods stand in the order of their end-point errors, the best first. Numbers have three
digits, as in the paper; the CSV has all of them, of every video and group too. A last column
says of how many frames the per-cent errors are means: a method that answers only where it is
easy would look good without it.
"""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from influx_wrap.evaluate.score import MEASURES, THRESHOLD_PX, Evaluation, Score

INTERVALS = (*MEASURES, str(THRESHOLD_PX))
"""What the numbers of a row are, by the keys of ``Evaluation.intervals``."""
HEADINGS = (*(f"% {name} error" for name in MEASURES), f"% EPE < {THRESHOLD_PX} px ↑")
FRAMES_HEADING = "frames predicted"
NOTHING = "–"
CSV_NUMBERS = (*(f"{name}_error_percent" for name in MEASURES), f"epe_below_{THRESHOLD_PX}_percent")
SCORE_CSV_COLUMNS = (
    "method", "kind", "by", "value", "frames", "predicted_frames", "pairs", *CSV_NUMBERS,
    *(f"{name}_{end}" for name in CSV_NUMBERS for end in ("low", "high")),
    "points", "n_points", "image_width", "image_height", "subsample",
)  # fmt: skip

LATEX_SPECIALS = {
    **{character: f"\\{character}" for character in "{}$&#_%"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    # Active in some languages.
    '"': r"\symbol{34}",
    # After the end of a row, these would be its options.
    "[": "{[}",
    "*": "{*}",
}
LAST_LATIN = "\u017f"
"""Letters after this one are more than every LaTeX has."""


def score_table(evaluations: Sequence[Evaluation], *, intervals: bool = False) -> str:
    """The table as text, with what was used below; a second line has the confidence intervals."""
    ordered = in_order(evaluations)
    rows = [("Method", *HEADINGS, FRAMES_HEADING)]
    for evaluation in ordered:
        rows.append(
            (
                one_line(evaluation.method),
                *map(shown, numbers(evaluation.overall)),
                frames_shown(evaluation.overall),
            )
        )
        if intervals and evaluation.intervals:
            rows.append(("", *intervals_shown(evaluation), ""))
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = [_aligned(row, widths) for row in rows]
    lines.insert(1, "-" * cell_len(lines[0]))
    return "\n".join([*lines, "", *used(ordered)]) + "\n"


def score_csv(evaluations: Sequence[Evaluation]) -> str:
    """A row for everything, and one for each video and each value of each group.

    Numbers are as they are, empty where there are none; only everything has intervals.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SCORE_CSV_COLUMNS)
    for evaluation in in_order(evaluations):
        width, height = evaluation.image_size
        for by, value, score in _scores(evaluation):
            ends = evaluation.intervals if by == "overall" else {}
            writer.writerow(
                [
                    one_line(evaluation.method), evaluation.kind, one_line(by), one_line(value),
                    score.frames, score.predicted_frames, score.histogram.n,
                    *map(_field, numbers(score)),
                    *(_field(end) for name in INTERVALS for end in ends.get(name, (math.nan,) * 2)),
                    one_line(evaluation.points_source), evaluation.n_points, width, height,
                    evaluation.subsample,
                ]
            )  # fmt: skip
    return text.getvalue()


def score_latex(evaluations: Sequence[Evaluation], *, intervals: bool = False) -> str:
    r"""The table for a paper that uses booktabs, the best numbers in bold.

    Names keep the letters that they have. Where pdfLaTeX may not know them, a comment says so.
    """
    ordered = in_order(evaluations)
    headings = [
        "Method",
        *(rf"\% {name} Error" for name in MEASURES),
        rf"\% EPE $<$ {THRESHOLD_PX} px $\uparrow$",
        "Frames Predicted",
    ]
    best = best_numbers([evaluation.overall for evaluation in ordered])
    lines = []
    for evaluation, is_best in zip(ordered, best, strict=True):
        texts = [_latex(shown(value)) for value in numbers(evaluation.overall)]
        values = [
            rf"\textbf{{{text}}}" if bold else text
            for text, bold in zip(texts, is_best, strict=True)
        ]
        frames = frames_shown(evaluation.overall)
        lines.append(" & ".join([latex_escape(evaluation.method), *values, frames]))
        if intervals and evaluation.intervals:
            ends = [rf"\scriptsize {_latex(text)}" for text in intervals_shown(evaluation)]
            lines.append(" & ".join(["", *ends, ""]).strip())
    caption = latex_escape(" ".join(used(ordered)))
    result = [
        r"% \usepackage{booktabs}",
        r"\begin{table*}[t]",
        r"    \centering",
        r"    \small",
        rf"    \caption{{Predicted intrinsics against ground truth. {caption}}}",
        r"    \label{tab:influx_scores}",
        r"    \begin{tabular}{l c c c c c c}",
        r"        \toprule",
        "        " + " & ".join(rf"\textbf{{{text}}}" for text in headings) + r" \\",
        r"        \midrule",
        *(rf"        {line} \\" for line in lines),
        r"        \bottomrule",
        r"    \end{tabular}",
        r"\end{table*}",
    ]
    text = "\n".join(result) + "\n"
    if any(character > LAST_LATIN for character in text):
        text = "% compile with lualatex, and a font that has all letters of the names\n" + text
    return text


def in_order(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The best end-point errors first, those without any last."""

    def worse(evaluation: Evaluation) -> float:
        below = numbers(evaluation.overall)[-1]
        return math.inf if math.isnan(below) else -below

    return sorted(evaluations, key=worse)


def numbers(score: Score) -> tuple[float, ...]:
    """Per-cent errors of fx, fy, cx, cy and the percentage below the threshold; NaN for none."""
    below = 100 * score.histogram.share_below(THRESHOLD_PX)
    return *map(float, score.percent_error), below


def best_numbers(scores: Sequence[Score]) -> list[list[bool]]:
    """Which numbers of which score are the best, as they are shown; none if there is no other."""
    texts = [[shown(value) for value in numbers(score)] for score in scores]
    best: list[str | None] = []
    for column, values in enumerate(zip(*map(numbers, scores), strict=True)):
        finite = [value for value in values if math.isfinite(value)]
        is_share = column == len(MEASURES)
        winner = (max if is_share else min)(finite) if finite and len(scores) > 1 else None
        best.append(None if winner is None else shown(winner))
    return [[text == winner for text, winner in zip(row, best, strict=True)] for row in texts]


def shown(value: float) -> str:
    """A percentage: three digits, with an exponent only where there would be many zeros."""
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    if not 1e-3 <= rounded < 1e5:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    decimals = max(2 - math.floor(math.log10(rounded)), 0)
    return f"{rounded:.{decimals}f}"


def frames_shown(score: Score) -> str:
    """How many of how many frames have a prediction."""
    return f"{score.predicted_frames} of {score.frames}"


def intervals_shown(evaluation: Evaluation) -> list[str]:
    """The confidence interval of each of ``numbers``."""
    ends = [evaluation.intervals.get(name, (math.nan, math.nan)) for name in INTERVALS]
    return ["" if math.isnan(low) else f"[{shown(low)}, {shown(high)}]" for low, high in ends]


def used(evaluations: Sequence[Evaluation]) -> list[str]:
    """Sentences: which frames and points the numbers are of, said once where all agree."""
    said = [_used(evaluation) for evaluation in evaluations]
    if len(set(said)) <= 1:
        return said[:1]
    return [
        f"{one_line(evaluation.method)}: {text}"
        for evaluation, text in zip(evaluations, said, strict=True)
    ]


def one_line(name: str) -> str:
    """A name without anything that does not print, such as a line's end or half a character."""
    return "".join(letter if letter.isprintable() else " " for letter in name).strip()


def latex_escape(name: str) -> str:
    """A name as LaTeX prints it."""
    name = unicodedata.normalize("NFC", one_line(name))
    escaped = "".join(LATEX_SPECIALS.get(letter, letter) for letter in name)
    # Two hyphens would become a dash.
    return re.sub("-(?=-)", "-{}", escaped)


def _used(evaluation: Evaluation) -> str:
    width, height = evaluation.image_size
    step = evaluation.subsample
    points = one_line(evaluation.points_source)
    some = "" if step == 1 else f", of one frame in {step}"
    videos = "1 video" if len(evaluation.videos) == 1 else f"{len(evaluation.videos)} videos"
    return (
        f"{evaluation.overall.frames} frames of {videos}, "
        f"{width} x {height} px; EPE of {evaluation.overall.histogram.n} pairs of a frame and "
        f"one of {evaluation.n_points} points ({points}){some}."
    )


def _scores(evaluation: Evaluation) -> Iterator[tuple[str, str, Score]]:
    yield "overall", "", evaluation.overall
    for by, values in evaluation.groups.items():
        for value, score in values.items():
            yield by, value, score
    for video, score in evaluation.videos.items():
        yield "video", video, score


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    pads = [" " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)]
    first, *others = zip(row, pads, strict=True)
    return "  ".join(["".join(first), *(pad + text for text, pad in others)]).rstrip()


def _field(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def _latex(text: str) -> str:
    return text.replace("∞", r"$\infty$").replace(NOTHING, "--")
