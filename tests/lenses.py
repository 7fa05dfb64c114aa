"""The answers to the paper's simulated lens, for tests whose point is not the lens."""

from influx_wrap.model.experiment import Plan
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.synth.lens import LensOptions, simulated_lens


def true_intrinsics(
    plan: Plan, *, breathing: float = 0.0, pp_offset_px: tuple[float, float] = (0.0, 0.0)
) -> dict[str, Intrinsics]:
    """True intrinsics by cell name, of a thin lens."""
    lens = simulated_lens(plan, LensOptions("thin", breathing, pp_offset_px))
    return {cell.name: lens.intrinsics(cell.lfl_mm, cell.fd_m) for cell in plan.cells}
