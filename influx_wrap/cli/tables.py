"""What commands print: tables and totals. Tables of a run fit a terminal of 80 columns."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table

from influx_wrap.engines.kalibr_kind import RecognisedKalibr
from influx_wrap.evaluate.cells import (
    SHOWN,
    CellResult,
    percent_errors,
    rms_over_bound,
    usability,
)
from influx_wrap.model.experiment import Plan
from influx_wrap.model.intrinsics import NAMES, field_of_view_deg
from influx_wrap.model.record import CellRecord
from influx_wrap.model.result import PICK_SIGMAS, Assessment, CalibrationResult

if TYPE_CHECKING:
    from influx_wrap.plan.next_experiments import Proposal

PLAIN_WIDTH = 110
"""Characters per line where there is no terminal to ask, in a log for instance."""

SOME_VIEWS = 4
"""So many views of a list are named."""

COLOURS = {"good": "green", "usable with care": "yellow", "not judged": "dim"}
"""Of verdicts; others are red."""


def answers() -> Console:
    """Where a command prints what it was asked for."""
    console = Console(highlight=False)
    is_told = console.is_terminal or "COLUMNS" in os.environ
    return console if is_told else Console(highlight=False, width=PLAIN_WIDTH)


def print_written(*paths: Path) -> None:
    """Which files there are now; brackets in their names are no markup."""
    answers().print(f"written: {escape(', '.join(map(str, paths)))}", soft_wrap=True)


def plan_table(plan: Plan) -> Table:
    """Targets by FD (rows) and LFL (columns)."""
    table = _table(f"{plan.lens.name} on {plan.camera.name}: target of each experiment")
    table.add_column("FD (m)", justify="right", no_wrap=True)
    for index, lfl in enumerate(plan.lfl_mm):
        table.add_column(f"z{index}\n{lfl:g} mm", justify="right", no_wrap=True)
    for index, fd in enumerate(plan.fd_m):
        targets = [cell.target_name for cell in plan.cells if cell.focus_index == index]
        table.add_row(f"f{index} {fd:5.2f}", *map(_target, targets))
    return table


def chosen_table(plan: Plan) -> Table:
    """One row per experiment, zoom by zoom."""
    table = _table(f"{plan.lens.name} on {plan.camera.name}: where to film")
    table.add_column("cell")
    for name in ("LFL (mm)", "FD (m)", "target"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in plan.cells:
        table.add_row(cell.name, f"{cell.lfl_mm:g}", f"{cell.fd_m:.2f}", _target(cell.target_name))
    return table


def next_table(proposals: Sequence[Proposal], title: str) -> Table:
    """One row per experiment to add, the best first."""
    table = _table(title)
    for name in ("LFL (mm)", "FD (m)", "target", "largest (px)", "mean (px)"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in proposals:
        table.add_row(
            f"{one.lfl_mm:g}",
            f"{one.fd_m:.2f}",
            _target(one.target),
            f"{one.before.largest_px:.2f} -> {one.after.largest_px:.2f}",
            f"{one.before.mean_px:.2f} -> {one.after.mean_px:.2f}",
        )
    return table


def plan_totals(plan: Plan) -> str:
    """How many experiments with each target."""
    counts = Counter(cell.target_name for cell in plan.cells)
    listed = ", ".join(f"{counts[name]} with {_words(name)}" for name in sorted(counts))
    return f"{len(plan.cells)} experiments: {listed}."


def calibration_summary(result: CalibrationResult) -> RenderableType:
    """A result as a person reads it."""
    table = _table("intrinsics")
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("± sigma", justify="right")
    values = zip(NAMES, result.intrinsics.array.tolist(), result.sigma.tolist(), strict=True)
    for name, value, sigma in values:
        digits = 3 if name in SHOWN else 6
        table.add_row(name, f"{value:.{digits}f}", f"{sigma:.{digits}f}")
    projection, residuals = result.projection_uncertainty, result.residuals
    lines = [
        f"field of view: {_field_of_view(result)}",
        f"projection uncertainty: median {projection.median_px:.3f} px, "
        f"worst {projection.worst_px:.3f} px over the image",
        f"views: {len(result.views_used)} of {len(result.views)} used, "
        f"{result.n_corners_removed} corners removed",
        *_not_used(result),
        f"residuals: {residuals.rms_px:.4f} px rms per axis over {residuals.corners} "
        f"corners, largest {residuals.max_px:.2f} px",
        f"corner noise: {result.corner_sigma_px:.4f} px",
        f"answer: {_selected(result.selected, len(result.rollouts))}",
    ]
    if result.engine is not None:
        lines.append(escape(f"calibrated by: {_engine(result.engine)}"))
    if result.bow_m is not None:
        bow = ", ".join(f"{1e3 * value:.3f}" for value in result.bow_m)
        lines.append(f"board bent by (mm along x, along y, twist): {bow}")
    lines += [f"[yellow]warning:[/] {escape(text)}" for text in result.warnings]
    return Group(table, *lines, *_verdict_lines("verdict", result.assessment))


def run_table(cells: Sequence[CellResult], title: str) -> Table:
    """One row per cell: setting, fx, cx and cy with sigma, and the verdict."""
    table = _table(title)
    table.add_column("cell", overflow="fold")
    for name in ("LFL mm", "FD m", "fx px ± σ", "cx px ± σ", "cy px ± σ"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    previous = None
    for cell in cells:
        if previous is not None and previous != cell.lfl_mm:
            table.add_section()
        previous = cell.lfl_mm
        table.add_row(
            escape(cell.cell),
            "" if cell.lfl_mm is None else f"{cell.lfl_mm:.4g}",
            "" if cell.fd_m is None else _metres(cell.fd_m),
            *(_with_sigma(cell, name) for name in ("fx", "cx", "cy")),
            _coloured(cell.verdict, cell.verdict.removeprefix("usable with ")),
        )
    return table


def error_table(cells: Sequence[CellResult]) -> Table:
    """Errors next to the bound, of the cells whose truth is known."""
    table = _table("estimate minus truth ± Cramér-Rao bound")
    table.add_column("cell", overflow="fold")
    table.add_column("target", justify="right", overflow="fold")
    for name, unit in zip(SHOWN, ("%", "%", "px", "px"), strict=True):
        table.add_column(f"{name} {unit}", justify="right", no_wrap=True)
    for cell in cells:
        if cell.error("fx") is not None:
            target = "" if cell.target is None else _target(cell.target)
            table.add_row(escape(cell.cell), target, *(_with_bound(cell, name) for name in SHOWN))
    return table


def run_reasons(cells: Sequence[CellResult]) -> list[str]:
    """Lines for each cell that is not simply good: why, what to film next, and warnings; and a
    line for all those whose answer is not the paper's."""
    lines = []
    for cell in cells:
        name = escape(cell.cell)
        if cell.reason is not None:
            lines.append(f"[red]{name} failed:[/] {escape(cell.reason)}")
        elif cell.assessment is not None and cell.assessment.grade != "good":
            lines += _verdict_lines(name, cell.assessment)
        word = _coloured("suspect", "suspect") if cell.is_suspect else "to be checked"
        lines += [f"{name}: {word}, {escape(sentence)}" for sentence in cell.suspicions]
        lines += [f"{name}: [yellow]warning[/], {escape(text)}" for text in cell.warnings]
    return lines + _off_paper(cells)


def _off_paper(cells: Sequence[CellResult]) -> list[str]:
    """How many answers the paper's pick is far from, how far at most, and why."""
    apart = {cell.cell: cell.off_paper for cell in cells if cell.off_paper is not None}
    if not apart:
        return []
    furthest, most = max(apart.items(), key=lambda item: item[1].sigmas)
    causes = Counter(difference.why for difference in apart.values()).most_common()
    why = "; ".join(text if len(causes) == 1 else f"{text} ({n})" for text, n in causes)
    noun = "experiment" if len(cells) == 1 else "experiments"
    return [
        f"[yellow]the paper's pick[/] differs by more than {PICK_SIGMAS:g} sigma in {len(apart)} "
        f"of {len(cells)} {noun}, at most by {most.sigmas:.1f} sigma ({most.parameter} of "
        f"{escape(furthest)}): {why}. result.json (paper_pick) and report.html have each."
    ]


def run_totals(cells: Sequence[CellResult], totals: Mapping[str, Any], seconds: float) -> str:
    """Errors over the bound, how often sigma holds, the verdict on the lens, and wall time."""
    lines = []
    for kind, title in (("board", "board cells"), ("drone", "drone cells")):
        rms, within = (totals[key][kind] for key in ("rms_error_over_bound", "share_within_sigma"))
        if rms is not None:
            values = "  ".join(f"{name} {rms[name]:.2f}" for name in SHOWN)
            lines.append(f"error / bound, RMS over {title}:  {values}")
        if within is not None:
            values = "  ".join(f"{name} {100 * within[name]:.0f} %" for name in SHOWN)
            lines.append(f"within 1 sigma, of {title}:  {values}")
    if lines:
        lines.append("(an error / bound of 1 is as good as the data allow; 68 % is a right sigma)")
    counts = [f"{n} {verdict}" for verdict, n in totals["verdicts"].items() if n]
    lines.append(f"Can this lens be used? {usability(cells)} ({', '.join(counts)})")
    noun = "cell" if totals["ok"] == 1 else "cells"
    lines.append(f"{totals['ok']} {noun} ok, {totals['failed']} failed, {seconds:.0f} s")
    return "\n".join(lines)


def compare_table(title: str, results: Mapping[str, Sequence[CellResult]]) -> Table:
    """Recipes by kind of target: failures, errors over the bound, median and largest error."""
    table = _table(title)
    for name in ("recipe", "target", "failed", ""):
        table.add_column(name, no_wrap=True)
    for name in SHOWN:
        table.add_column(name, justify="right", no_wrap=True)
    for recipe, all_cells in results.items():
        label = recipe
        for kind, is_drone in (("board", False), ("drone", True)):
            cells = [cell for cell in all_cells if cell.is_drone == is_drone]
            if not cells:
                continue
            failed = sum(cell.reason is not None for cell in cells)
            head = label, kind, f"{failed} of {len(cells)}"
            label = ""
            for words, values in _compared(cells):
                table.add_row(*head, words, *values)
                head = "", "", ""
        table.add_section()
    return table


def _compared(cells: Sequence[CellResult]) -> list[tuple[str, list[str]]]:
    """Rows of errors, in words and by parameter; an empty one if no cell has an answer."""
    rms, errors = rms_over_bound(cells), percent_errors(cells)
    if rms is None or errors is None:
        return [("no answer", [""] * len(SHOWN))]
    return [
        ("RMS error / bound", [f"{rms[name]:.2f}" for name in SHOWN]),
        *(
            (f"{kind} error, %", [f"{errors[name][kind]:.4f}" for name in SHOWN])
            for kind in ("median", "max")
        ),
    ]


def beside_table(
    title: str,
    records: Mapping[str, Mapping[str, CellRecord]],
    seconds: Mapping[tuple[str, str], float],
) -> Table:
    """Cell by cell what each recipe, or a Kalibr, found: intrinsics, views and time."""
    table = _table(title)
    for name in ("cell", "by"):
        table.add_column(name, no_wrap=True)
    for name in (*SHOWN, "views", "time s"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in next(iter(records.values())):
        label = escape(cell)
        for recipe, by_cell in records.items():
            result, took = by_cell[cell].result, seconds.get((recipe, cell))
            time_s = "" if took is None else f"{took:.1f}"
            if result is None:
                table.add_row(label, recipe, *[""] * len(SHOWN), "failed", time_s)
            else:
                values = [f"{getattr(result.intrinsics, name):.3f}" for name in SHOWN]
                views = f"{len(result.views_used)} of {len(result.views)}"
                table.add_row(label, recipe, *values, views, time_s)
            label = ""
        table.add_section()
    return table


def epe_table(thresholds_px: Sequence[float], shares: Mapping[str, Sequence[float]]) -> Table:
    """Share of all points that a recipe's answers put within each distance of the truth."""
    table = _table("points within a distance of where the true camera sees them, all cells")
    table.add_column("recipe", no_wrap=True)
    for threshold in thresholds_px:
        table.add_column(f"{threshold:g} px", justify="right", no_wrap=True, min_width=9)
    for recipe, share in shares.items():
        table.add_row(recipe, *(f"{100 * value:.1f} %" for value in share))
    return table


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", box=box.HORIZONTALS, show_edge=False, padding=(0, 0)
    )


def _not_used(result: CalibrationResult) -> list[str]:
    """How many views were left out for each reason, and the first of them by name."""
    left_out: dict[str, list[str]] = {}
    for view in result.views:
        if not view.used:
            left_out.setdefault(view.reason or "", []).append(view.label)
    lines = []
    for reason, labels in sorted(left_out.items(), key=lambda item: -len(item[1])):
        more = len(labels) - SOME_VIEWS
        named = ", ".join(labels[:SOME_VIEWS]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"  {len(labels)} not used: {escape(f'{reason} ({named})')}")
    return lines


def _verdict_lines(name: str, assessment: Assessment | None) -> list[str]:
    if assessment is None:
        return [f"{name}: not judged"]
    words = assessment.sentence.removeprefix(assessment.grade)
    lines = [f"{name}: {_coloured(assessment.grade, assessment.grade)}{escape(words)}"]
    if assessment.film_next:
        lines.append(f"  film next: {escape('; '.join(assessment.film_next))}")
    return lines


def _coloured(verdict: str, text: str) -> str:
    return f"[{COLOURS.get(verdict, 'red')}]{text}[/]"


def _field_of_view(result: CalibrationResult) -> str:
    angles = field_of_view_deg(result.intrinsics, result.image_size)
    return ", ".join(
        f"{name} {f'{angle:.2f}°' if math.isfinite(angle) else 'beyond the fold of the distortion'}"
        for name, angle in zip(("horizontal", "vertical", "diagonal"), angles, strict=True)
    )


def _with_sigma(cell: CellResult, name: str) -> str:
    """Pixels with as many decimals as sigma has to tell, two at most."""
    if cell.intrinsics is None or cell.sigma is None:
        return ""
    value, sigma = getattr(cell.intrinsics, name), cell.sigma[name]
    if sigma < 0.005:
        return f"{value:.2f} <0.01"
    decimals = max(0, min(2, 1 - math.floor(math.log10(sigma))))
    return f"{value:.{decimals}f} ±{sigma:.{decimals}f}"


def _with_bound(cell: CellResult, name: str) -> str:
    in_percent = name in ("fx", "fy")
    error = cell.error_percent(name) if in_percent else cell.error(name)
    bound = cell.bound_percent(name) if in_percent else (cell.bound or {}).get(name)
    if error is None:
        return ""
    digits = 3 if in_percent else 2
    # An error of many digits leaves no room for so many decimals.
    if abs(error) >= 10:
        digits = max(0, digits - math.floor(math.log10(abs(error))))
    rounded = round(error, digits) + 0.0  # No minus before nothing.
    return f"{rounded:+.{digits}f}" + ("" if bound is None else f" ±{bound:.{digits}f}")


def _metres(fd_m: float) -> str:
    return "inf" if math.isinf(fd_m) else f"{fd_m:.{2 if fd_m < 100 else 0}f}"


def _target(name: str) -> str:
    return f"[dark_orange]{name}[/]" if name == "drone" else escape(name)


def _words(name: str) -> str:
    return "the drone" if name == "drone" else f"board {name}"


def _engine(engine: Mapping[str, Any]) -> str:
    """Which Kalibr it was, and by which recipe."""
    which = RecognisedKalibr(engine["kind"], engine["version"])
    return f"{which}, recipe {engine['recipe']}"


def _selected(selected: int | str, n_rollouts: int) -> str:
    if selected == "batch":
        return "all views at once"
    if selected == "all-views":
        return f"all views that {n_rollouts} rollouts trust"
    if selected == "initialization":
        return "the initialisation"
    return f"rollout {selected} of {n_rollouts} (counted from 0)"
