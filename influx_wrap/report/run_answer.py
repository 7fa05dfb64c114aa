"""The first screen of a run's page: can this lens be used, where not, and what to do next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from influx_wrap.evaluate.cells import SHOWN, CellResult, totals, usability
from influx_wrap.model.record import CellRecord
from influx_wrap.model.result import Json
from influx_wrap.report.explorer import ProposedExperiment


def lens_answer(results: Sequence[CellResult]) -> Json:
    """What there is to say of all experiments together.

    usability  whether the lens can be used, a sentence
    verdicts   how many experiments have each
    filmNext   what to film or to mend, and the names of the experiments that ask for it
    facts      further sentences
    offPaper   what the paper's choice among the rollouts would have changed; None: nothing
    """
    total = totals(results)
    return {
        "usability": usability(results),
        "verdicts": [[verdict, n] for verdict, n in total["verdicts"].items() if n],
        "filmNext": _film_next(results),
        "facts": _facts(results, total),
        "offPaper": _off_paper(results),
    }


def source_words(records: Sequence[CellRecord], footage: str | None) -> str:
    """Where the experiments come from, in words."""
    simulated = ["simulation" in record.provenance for record in records if record.provenance]
    if footage is not None:
        return f"recorded in the folder {footage}"
    if any(simulated):
        return "simulated" if all(simulated) else "simulated in part"
    return "recorded"


def missing_data(missing: Sequence[ProposedExperiment]) -> list[Json]:
    """The experiments that the lens's table lacks, as the page takes them."""
    return [
        {
            "lfl": one.lfl_mm,
            "fd": "inf" if math.isinf(one.fd_m) else one.fd_m,
            "target": one.target,
            "gain": one.gain_px,
        }
        for one in missing
    ]


def _off_paper(results: Sequence[CellResult]) -> Json | None:
    """One sentence for all, with the names of the experiments that it is about."""
    apart = {result.cell: result.off_paper for result in results if result.off_paper is not None}
    if not apart:
        return None
    cell, most = max(apart.items(), key=lambda item: item[1].sigmas)
    causes = Counter(difference.why for difference in apart.values()).most_common()
    why = "; ".join(text if len(causes) == 1 else f"{text} ({n})" for text, n in causes)
    return {
        "words": f"The paper's rule would have chosen intrinsics up to {most.sigmas:.1f} sigma "
        f"away ({most.parameter} of {cell}): {why}. This page shows other ones.",
        "cells": list(apart),
    }


def _film_next(results: Sequence[CellResult]) -> list[tuple[str, list[str]]]:
    """What most experiments ask for first."""
    asked: dict[str, list[str]] = {}
    for result in results:
        for text in () if result.assessment is None else result.assessment.film_next:
            asked.setdefault(text, []).append(result.cell)
    return sorted(asked.items(), key=lambda item: -len(item[1]))


def _facts(results: Sequence[CellResult], total: Json) -> list[str]:
    noun = "experiment" if len(results) == 1 else "experiments"
    facts = [f"{len(results)} {noun}: {total['ok']} ok, {total['failed']} failed."]
    for kind, rms in total["rms_error_over_bound"].items():
        if rms is not None:
            values = ", ".join(f"{name} {rms[name]:.2f}" for name in SHOWN)
            facts.append(
                "Error / bound (1: as good as the data allow, by the Cramér-Rao bound), RMS over "
                f"{kind} experiments: {values}."
            )
    for kind, within in total["share_within_sigma"].items():
        if within is not None:
            values = ", ".join(f"{name} {100 * within[name]:.0f} %" for name in SHOWN)
            facts.append(
                f"Errors within 1 sigma (68 % if sigma is right), of {kind} experiments: {values}."
            )
    errors = total["error_percent"]
    if errors is not None:
        fx = errors["fx"]
        facts.append(f"fx is {fx['median']:.2g} % off (median), {fx['max']:.2g} % at most.")
        return facts
    sigmas = [sigma for sigma in (result.sigma_percent("fx") for result in results) if sigma]
    if sigmas:
        median, largest = float(np.median(sigmas)), max(sigmas)
        facts.append(f"Sigma of fx: {median:.2g} % (median), {largest:.2g} % at most.")
    return facts
