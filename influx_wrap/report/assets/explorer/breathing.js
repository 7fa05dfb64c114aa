// Focus breathing in the lens explorer: the camera's focal length over focus distance, while the
// lens's stays.

const BREATHING_STEPS = 80, BREATHING_LINES = 5;
const breathing = {};

const cflOf = (theta) => 1e-3 * Math.sqrt(data.pixelUm[0] * theta[0] * data.pixelUm[1] * theta[1]);

// [1 / FD, CFL, its sigma] from a little nearer than the table to infinity, at a focal length; none
// where a scheme has no answer. Relative errors of fx and fy go together: fx's serves for both.
function breathingOf(lookup, lfl) {
  const points = [];
  for (let k = 0; k <= BREATHING_STEPS; k += 1) {
    const fd = k === BREATHING_STEPS ? Infinity : nearest / (1.1 * (1 - k / BREATHING_STEPS));
    const answer = query(lookup, lfl, fd);
    if (!answer.intrinsics) continue;
    const cfl = cflOf(answer.intrinsics);
    const sigma = cfl * sigmaOf(lookup, answer)[0] / answer.intrinsics[0];
    points.push([axes.inverse.u(fd), cfl, Number.isNaN(sigma) ? 0 : sigma]);
  }
  return points;
}

function bandOf(points, value = (cfl) => cfl) {
  return { xs: [...points, ...points.toReversed()].map(([u]) => u),
    ys: [...points.map(([, cfl, sigma]) => value(cfl - sigma)),
      ...points.toReversed().map(([, cfl, sigma]) => value(cfl + sigma))] };
}

function makeBreathing() {
  const { range } = axes.inverse, ticks = apart(planeTicks(axes.inverse).x, range, 7);
  const x = { label: axes.inverse.label, range, ticks };
  const own = new Chart(byId("breathing-own"), {
    label: "Focus breathing at the cursor", height: 280, x,
    y: { label: "CFL (mm)", range: [0, 1] },
  });
  const all = new Chart(byId("breathing-all"), {
    label: "Focus breathing of the whole lens", height: 280, x,
    y: { label: "CFL / LFL \u2212 1 (%)", range: [0, 1] },
  });
  Object.assign(breathing, { own, all, line: own.empty("x", "y"), paper: own.empty("x", "y"),
    band: own.empty("xs", "ys"), measured: own.empty("x", "y"),
    at: own.empty("x", "y"), lines: all.empty("xs", "ys"), bands: all.empty("xs", "ys"),
    papers: all.empty("xs", "ys"), names: all.source(named([], [], range)) });
  const at = fields("x", "y"), lines = fields("xs", "ys");
  const band = { ...lines, fill_alpha: 0.25, line_alpha: 0 };
  own.add("patches", { ...band, source: breathing.band }, { fill: "mark" });
  own.add("line", { ...at, source: breathing.paper, line_width: 1.5, ...dashes(5, 3) },
    { line: "quiet" });
  own.add("line", { ...at, source: breathing.line, line_width: 2 }, { line: "mark" });
  own.add("scatter", { ...at, source: breathing.measured, marker: "square", size: 7 },
    { line: "ink", fill: "card" });
  own.add("scatter", { ...at, source: breathing.at, level: "overlay", marker: "circle", size: 9 },
    { line: "ink", fill: "warn" });
  all.add("patches", { ...band, source: breathing.bands }, { fill: "mark" });
  all.add("multi_line", { ...lines, source: breathing.papers, line_width: 1.5, ...dashes(5, 3) },
    { line: "quiet" });
  all.add("multi_line", { ...lines, source: breathing.lines, line_width: 2 }, { line: "mark" });
  addNames(all, breathing.names);
  for (const kind of ["tap", "press"]) {
    own.on(kind, (u) => pinAt(state.lfl, fromPlane(clamp(u, ...range), 0)[1]));
  }
  drawBreathing();
}

// A range of values with some room around them.
function roomAround(values) {
  const known = values.filter(Number.isFinite);
  if (!known.length) return [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const pad = 0.06 * (high - low) || 1e-3 * Math.abs(high) || 1;
  return [low - pad, high + pad];
}

function drawBreathing() {
  const lookup = lookupOf(state.scheme), paper = lookupOf("paper");
  const points = state.lfl > 0 ? breathingOf(lookup, state.lfl) : [];
  sayBreathing(points);
  if (!breathing.own) return;
  const other = lookup === paper || !points.length ? [] : breathingOf(paper, state.lfl);
  const near = experiments.filter(({ lfl }) => Math.abs(lfl / state.lfl - 1) < 0.005);
  const measured = near.map(({ row, fd }) => [axes.inverse.u(fd), cflOf(data.values[row])]);
  const { xs, ys } = bandOf(points);
  breathing.line.data = xyOf(points);
  breathing.paper.data = xyOf(other);
  breathing.band.data = { xs: [xs], ys: [ys] };
  breathing.measured.data = xyOf(measured);
  const now = query(lookup, state.lfl, state.fd).intrinsics;
  breathing.at.data = xyOf(now ? [[axes.inverse.u(state.fd), cflOf(now)]] : []);
  const shownValues = [...ys, ...other.map(([, cfl]) => cfl), ...measured.map(([, cfl]) => cfl)];
  breathing.own.axis("y", { range: roomAround(shownValues) });
  breathing.own.describe(byId("breathing-words").textContent || "Focus breathing at the cursor");
  if (breathing.scheme !== state.scheme) drawAllBreathing(lookup, paper);
}

// Some focal lengths from the shortest to the longest.
function drawAllBreathing(lookup, paper) {
  breathing.scheme = state.scheme;
  const lfls = isColumn ? [columns[0]] : Array.from({ length: BREATHING_LINES }, (_, k) => Number(
    (leastLfl * (mostLfl / leastLfl) ** (k / (BREATHING_LINES - 1))).toPrecision(6)));
  const inTable = lfls.map((lfl) => clamp(lfl, leastLfl, mostLfl));
  const relative = (lfl) => (cfl) => 100 * (cfl / lfl - 1);
  const linesOf = (own) => inTable.map((lfl) => breathingOf(own, lfl)
    .map(([u, cfl, sigma]) => [u, relative(lfl)(cfl), 100 * sigma / lfl]));
  const lines = linesOf(lookup), others = lookup === paper ? [] : linesOf(paper);
  const bands = lines.map((points) => bandOf(points));
  breathing.lines.data = xysOf(lines);
  breathing.papers.data = xysOf(others);
  breathing.bands.data = { xs: bands.map(({ xs }) => xs), ys: bands.map(({ ys }) => ys) };
  const [low, high] = roomAround(lines.flat().map(([, y]) => y));
  const ends = lines.flatMap(([first], k) => (first ? [[first[1], first[0], inTable[k]]] : []));
  // Names that would lie on others are left out.
  const kept = apart(ends.sort((a, b) => a[0] - b[0]), [low, high], 16);
  breathing.names.data = named(kept.map(([y, u]) => [u, y]),
    kept.map(([, , lfl]) => `${short(lfl, 3)} mm`), axes.inverse.range);
  breathing.all.axis("y", { range: [low, high + 0.06 * (high - low)] });
}

function sayBreathing(points) {
  const words = byId("breathing-words"), last = points.at(-1);
  if (!points.length || last[0] !== 0) {
    words.textContent = "";
    return;
  }
  const [, near] = points.find(([u]) => u >= axes.inverse.u(nearest)), [, far, sigma] = last;
  const more = 100 * (near / far - 1);
  words.textContent = `At ${short(state.lfl, 6)} mm the camera's focal length is `
    + `${far.toFixed(3)} mm at infinity (\u00b1 ${small(sigma)}), and ${small(Math.abs(more), 3)} % `
    + `${more < 0 ? "shorter" : "longer"} at ${metres(nearest)}.`;
  words.dataset.value = String(far);
}
