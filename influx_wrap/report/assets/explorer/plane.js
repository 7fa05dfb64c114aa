// The lens explorer's plane of settings: regions, experiments, what is shown in colours, and the
// cursor.

const plane = {};

function makePlane() {
  const height = innerWidth < 640 ? 340 : 540, ticks = planeTicks();
  const chart = new Chart(byId("plane"), {
    label: `Plane of settings of ${data.lens}`, height,
    x: { label: axis().label, range: axis().range, ticks: ticks.x },
    y: { label: "lens focal length LFL (mm)", range: vRange, ticks: ticks.y },
  });
  Object.assign(plane, {
    chart, raster: chart.source({ image: raster([NaN], 1, 1), x: [0], y: [0], dw: [1], dh: [1] }),
    zones: chart.empty("xs", "ys"), quads: chart.empty("xs", "ys"),
    triangles: chart.empty("xs", "ys"),
    path: ["inside", "beyond"].map(() => chart.empty("x", "y")),
    stays: ["inside", "beyond"].map(() => chart.empty("x", "y")),
    experiments: chart.empty("x", "y", "marker", "fill", "size"),
    odd: chart.source(named([], [], [0, 1])), proposals: chart.source(named([], [], [0, 1])),
    spokes: chart.empty("x0", "y0", "x1", "y1"), vertices: chart.empty("x", "y", "size"),
    cursor: chart.empty("x", "y"), cross: chart.empty("x0", "y0", "x1", "y1"),
  });
  const at = fields("x", "y"), lines = fields("xs", "ys");
  const from = fields("x0", "y0", "x1", "y1");
  plane.image = chart.image(plane.raster, "value", {
    ...fields("x", "y", "dw", "dh"), low: 0, high: 1,
  });
  chart.add("patches", { ...lines, source: plane.zones, fill_alpha: 0.62, line_alpha: 0,
    hatch_pattern: "right_diagonal_line", hatch_alpha: 0.8, hatch_scale: 9, hatch_weight: 1 },
  { fill: "card", hatch: "ink" });
  rimmed(chart, "multi_line", { ...lines, source: plane.quads }, { line: "ink" });
  rimmed(chart, "multi_line", { ...lines, source: plane.triangles, ...dashes(4, 3) },
    { line: "ink" });
  chart.add("scatter", { ...at, ...fields("marker", "size"), fill_color: { field: "fill" },
    source: plane.experiments }, { line: "ink" });
  rimmed(chart, "scatter", { ...at, source: plane.odd, marker: "circle", size: 17, fill_color: null,
    line_width: 3 }, { line: "warn" });
  chart.add("scatter", { ...at, source: plane.proposals, marker: "star", size: 19, line_width: 1.5 },
    { line: "ink", fill: "card" });
  for (const source of [plane.odd, plane.proposals]) addNames(chart, source);
  const [inside, beyond] = plane.path;
  rimmed(chart, "line", { ...at, source: inside, line_width: 2.5 }, { line: "ink" });
  rimmed(chart, "line", { ...at, source: beyond, line_width: 2.5, ...dashes(6, 4) },
    { line: "warn" });
  const [stay, stayBeyond] = plane.stays, dot = { ...at, line_width: 2 };
  chart.add("scatter", { ...dot, source: stay, marker: "circle", size: 11 },
    { line: "card", fill: "ink" });
  chart.add("scatter", { ...dot, source: stayBeyond, marker: "diamond", size: 17 },
    { line: "card", fill: "warn" });
  // What moves lies on a layer of its own, so that the rest is not drawn again.
  rimmed(chart, "segment", { ...from, source: plane.cross, level: "overlay", ...dashes(2, 3) },
    { line: "ink" });
  rimmed(chart, "segment", { ...from, source: plane.spokes, level: "overlay", line_width: 2 },
    { line: "mark" });
  rimmed(chart, "scatter", { ...at, source: plane.vertices, level: "overlay", marker: "circle",
    size: { field: "size" }, fill_alpha: 0.25, line_width: 2 }, { line: "mark", fill: "mark" });
  rimmed(chart, "scatter", { ...at, source: plane.cursor, level: "overlay", marker: "circle_cross",
    size: 17, fill_color: null, line_width: 2.5 }, { line: "warn" });
  chart.on("mousemove", (u, v) => { if (!state.pinned) moveTo(...snapped(u, v)); });
  // A slow click is a press.
  for (const kind of ["tap", "press"]) chart.on(kind, (u, v) => pinAt(...snapped(u, v)));
  drawPlane();
}

// A line or a marker that is seen on every colour of the plane, in light and dark: its own colour is
// seen on the page's, of which it has a rim.
function rimmed(chart, kind, properties, look) {
  const { line_dash: _, line_width: width = 1.2, ...rest } = properties;
  chart.add(kind, { ...rest, line_width: width + 2.4, ...(look.fill ? { fill_alpha: 0 } : {}) },
    { line: "card" });
  chart.add(kind, { line_width: width, ...properties }, look);
}

// Names beside the places of a source (see "named"), readable on any colour.
function addNames(chart, source) {
  chart.add("text", { ...fields("x", "y", "text"), text_align: { field: "align" },
    x_offset: { field: "beside" }, y_offset: -5, source, text_font_size: { value: "12px" },
    text_font_style: "bold", padding: 2 },
  { text: "ink", background_fill: "card" });
}

// Columns of places [x, y] and their names, which stay inside a figure with this range of x.
function named(places, texts, [from, to]) {
  const isLeft = places.map(([x]) => x > from + 0.85 * (to - from));
  return { ...xyOf(places), text: texts, align: isLeft.map((is) => (is ? "right" : "left")),
    beside: isLeft.map((is) => (is ? -11 : 11)) };
}

// The experiment at a place of the plane, if there is one within a few pixels.
function snapped(u, v) {
  const [from, to] = axis().range, box = byId("plane");
  const perU = box.clientWidth / (to - from), perV = box.clientHeight / (vRange[1] - vRange[0]);
  for (const { lfl, fd } of experiments) {
    const [eu, ev] = toPlane(lfl, fd);
    if (Math.hypot((eu - u) * perU, isColumn ? 0 : (ev - v) * perV) < 5) return [lfl, fd];
  }
  return fromPlane(u, v);
}

function drawPlane() {
  if (!plane.chart) return;
  const ticks = planeTicks();
  plane.chart.axis("x", { range: axis().range, ticks: ticks.x, label: axis().label });
  drawRegions();
  drawHeat();
  drawPath();
  drawCursor();
}

function drawRegions() {
  const lookup = lookupOf(state.scheme);
  const quads = [], triangles = [];
  const done = new Set();
  for (const corners of lookup.regions ?? []) {
    const own = corners.filter((row) => row >= 0), isQuad = own.length === 4;
    own.forEach((row, k) => {
      const other = own[(k + 1) % own.length], key = [row, other].sort((a, b) => a - b).join();
      if (row === other || done.has(key)) return;
      done.add(key);
      const kind = isQuad || own.length < 3 ? quads : triangles;
      kind.push(edge(lookup, lookup.places[row], lookup.places[other]));
    });
  }
  plane.quads.data = xysOf(quads);
  plane.triangles.data = xysOf(triangles);
  const zones = { xs: [], ys: [] };
  const steps = Array.from({ length: 61 }, (_, k) => (isColumn ? columns[0]
    : leastLfl * (mostLfl / leastLfl) ** (k / 60)));
  const bounds = steps.map((lfl) => rangeOfY(lookup, lfl).map((y) => axis().u(toFd(lookup, y)))
    .sort((a, b) => a - b));
  const vs = steps.map((lfl, k) => (isColumn ? columnV(k / 60) : Math.log(lfl)));
  for (const [side, end] of [[0, axis().range[0]], [1, axis().end]]) {
    zones.xs.push([...bounds.map((bound) => bound[side]), end, end]);
    zones.ys.push([...vs, vs.at(-1), vs[0]]);
  }
  plane.zones.data = zones;
}

const columnV = (share) => vRange[0] + (0.3 + 0.4 * share) * (vRange[1] - vRange[0]);

// A straight line between places of a scheme, as it looks on the plane.
function edge(lookup, [x0, y0], [x1, y1]) {
  return Array.from({ length: 17 }, (_, k) => {
    const share = k / 16;
    return toPlane(x0 + share * (x1 - x0), toFd(lookup, y0 + share * (y1 - y0)));
  });
}

const shown = () => { const [kind, k] = state.show.split("-"); return { kind, k: Number(k) }; };
const isLog = ({ kind, k }) => kind !== "value" || k < 2;

// Kinds of what is shown that every setting has, and that experiments have.
const RASTERS = {
  value: (lookup, answer, k) => answer.intrinsics[k],
  sigma: (lookup, answer, k) => sigmaOf(lookup, answer)[k],
  percent: (lookup, answer, k) => 100 * sigmaOf(lookup, answer)[k] / answer.intrinsics[k],
  corner: (lookup, answer) => cornerSigma(lookup, answer) ?? NaN,
};
const ERRORS = {
  left: (lookup, k) => lookup.leftOut.errors.map((row) => row[k] ?? NaN),
  z: (lookup, k) => lookup.leftOut.z?.map((row) => Math.abs(row[k])) ?? [],
  worst: (lookup) => lookup.leftOut.z?.map((row) => Math.max(...row.map(Math.abs))) ?? [],
};

// What is shown at the middles of the raster's cells, and which of them are interpolated.
function heatValues(lookup, { kind, k }) {
  const { columns: nx, rows } = planeSize, ny = isColumn ? 1 : rows;
  const [from, to] = [axis().range[0], axis().end];
  const values = new Float64Array(nx * ny).fill(NaN), inside = new Uint8Array(nx * ny);
  for (let j = 0; j < ny; j += 1) {
    const lfl = isColumn ? columns[0] : leastLfl * (mostLfl / leastLfl) ** ((j + 0.5) / ny);
    for (let i = 0; i < nx; i += 1) {
      const answer = query(lookup, lfl, axis().fd(from + (to - from) * (i + 0.5) / nx));
      if (!answer.intrinsics) continue;
      const at = j * nx + i;
      values[at] = RASTERS[kind](lookup, answer, k);
      inside[at] = answer.status === STATUS.INTERPOLATED;
    }
  }
  return { values, inside, nx, ny };
}

// Least and greatest of what is shown, as colours use them: the logarithm where sizes differ much.
function colourScale(values, log) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (Number.isNaN(value) || (log && !(value > 0))) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return null;
  if (log) low = Math.max(low, 1e-3 * high);
  if (high - low <= 1e-12 * Math.abs(high)) {
    const pad = Math.abs(high) * 1e-3 || 1;
    low -= log ? 0 : pad;
    high += pad;
  }
  const place = (value) => (log ? Math.log10(Math.max(value, 1e-300)) : value);
  return { low, high, log, place, from: place(low), to: place(high) };
}

function drawHeat() {
  const what = shown(), lookup = lookupOf(state.scheme);
  const [card, quiet] = [cssColour("card"), cssColour("quiet")];
  const errors = ERRORS[what.kind] ? errorsOf(lookup, what) : null;
  const hasRaster = Object.hasOwn(RASTERS, what.kind);
  let scale = null;
  if (hasRaster) {
    const { values, inside, nx, ny } = heatValues(lookup, what);
    const within = values.filter((_, k) => inside[k]);
    scale = colourScale(within.length ? within : values, isLog(what));
    const [bottom, top] = isColumn ? [columnV(0), columnV(1)]
      : [Math.log(leastLfl), Math.log(mostLfl)];
    if (scale) {
      plane.image.mapper.setv({ low: scale.from, high: scale.to });
      plane.raster.data = {
        image: raster(values.map((value) => (value === value ? scale.place(value) : NaN)), ny, nx),
        x: [axis().range[0]], y: [bottom], dw: [axis().end - axis().range[0]], dh: [top - bottom],
      };
    }
  } else if (errors) scale = what.kind === "left" ? colourScale(errors, true) : zScale(errors);
  plane.image.renderer.visible = hasRaster && scale !== null;
  const at = experiments.map(({ lfl, fd }) => toPlane(isColumn ? columns[0] : lfl, fd));
  const colours = errors && scale ? errors.map((error) => errorColour(scale, error)) : null;
  plane.experiments.data = {
    ...xyOf(at),
    marker: experiments.map(({ target }, row) => ((errors && Number.isNaN(errors[row]))
      || isSetAside(lookup, row) ? "x" : target === "drone" ? "triangle" : "square")),
    size: experiments.map((_, row) => (!errors ? 7 : Number.isNaN(errors[row]) ? 6 : 13)),
    fill: experiments.map((_, row) => colours?.[row] ?? (errors ? quiet : card)),
  };
  drawMarked(lookup, at);
  drawBar(byId("bar"), scale, errors ? "error" : "value", unitOf(what));
  const words = lookup.isSmooth ? smoothLegend(lookup)
    : `Solid edges: bilinear regions and lines; dashed: triangles. Hatched: extrapolated.${
      errors ? " \u2715 an experiment that no others enclose." : ""}`;
  const shapes = [data.isDrone.some((is) => !is) && "\u25a0 board", data.isDrone.some((is) => is)
    && "\u25b2 drone"].filter(Boolean).join(", ");
  const planned = data.proposals.length ? " \u2606 experiments to add, the best first." : "";
  const none = hasRaster && !scale ? " The scheme does not know what is to be shown." : "";
  byId("legend").textContent = `${shapes}. ${words}${planned}${none}`;
  plane.chart.describe(`Plane of settings of ${data.lens}: ${data.names.length} experiments`
    + `${what.kind === "none" ? "" : `, coloured by ${byId("show").selectedOptions[0].text}`}`);
}

// What leaving each experiment out says, NaN for those that a scheme cannot predict.
function errorsOf(lookup, { kind, k }) {
  const errors = ERRORS[kind](lookup, k);
  return experiments.map((_, row) => errors[row] ?? NaN);
}

// Of z-scores: from none to where an experiment is odd.
function zScale(values) {
  if (values.every(Number.isNaN)) return null;
  return { low: 0, high: smooth.leftOut.odd, log: false, place: (z) => z, from: 0,
    to: smooth.leftOut.odd };
}

const isSetAside = (lookup, row) => Boolean(lookup.isSmooth && lookup.leftOut.setAside[row]);

// Experiments that contradict the others, by name, and those to add, by number.
function drawMarked(lookup, at) {
  const odd = lookup.isSmooth ? oddExperiments() : [];
  const { range } = axis();
  plane.odd.data = named(odd.map(({ row }) => at[row]), odd.map(({ name }) => name), range);
  const places = data.proposals.map(({ lfl, fd }) => toPlane(isColumn ? columns[0] : lfl, fd));
  plane.proposals.data = named(places, places.map((_, k) => `+${k + 1}`), range);
}

function smoothLegend(lookup) {
  const odd = oddExperiments().length ? " Ringed: contradicts the others." : "";
  const aside = lookup.leftOut.setAside.some(Boolean) ? " \u2715 set aside." : "";
  return `Hatched: not surrounded by experiments, extrapolated.${odd}${aside}`;
}

function errorColour(scale, error) {
  if (Number.isNaN(error)) return null;
  const share = (scale.place(error) - scale.from) / (scale.to - scale.from);
  return shade(ramp("error"), share);
}

function unitOf({ kind, k }) {
  if (kind === "left") return k < 4 ? "%" : "";
  if (kind === "z" || kind === "worst") return "|z|, in sigmas";
  return { corner: "px", percent: "%" }[kind] ?? UNITS[k] ?? "";
}

function drawBar(holder, scale, palette, unit) {
  holder.replaceChildren();
  if (!scale) return;
  const values = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const at = scale.from + share * (scale.to - scale.from);
    return small(scale.log ? 10 ** at : at, 3);
  });
  const colours = make("div", { class: "colours",
    style: `background: linear-gradient(to right, ${RAMPS[palette].join(", ")})` });
  const scaled = scale.log ? ", logarithmic" : "";
  holder.append(colours, make("div", { class: "values" },
    ...values.map((value) => make("span", {}, value))));
  holder.append(make("div", {}, `${unit ? `${unit}` : "no unit"}${scaled}`));
}

function drawCursor() {
  if (!plane.chart) return;
  const answer = query(lookupOf(state.scheme), state.lfl, state.fd);
  const known = state.lfl > 0 && state.fd > 0;
  const [u, v] = known ? toPlane(state.lfl, state.fd) : [NaN, NaN];
  plane.cursor.data = xyOf(known ? [[u, v]] : []);
  plane.cross.data = known ? {
    x0: [axis().range[0], u], x1: [axis().range[1], u], y0: [v, vRange[0]], y1: [v, vRange[1]],
  } : noRows("x0", "y0", "x1", "y1");
  const at = answer.vertices.map((row) => toPlane(isColumn ? columns[0] : data.lfl[row],
    data.fd[row]));
  const { x, y } = xyOf(at);
  plane.vertices.data = { x, y,
    size: answer.weights.map((weight) => 7 + 22 * Math.sqrt(clamp(weight, 0, 1))) };
  plane.spokes.data = { x0: at.map(() => u), y0: at.map(() => v), x1: x, y1: y };
}
