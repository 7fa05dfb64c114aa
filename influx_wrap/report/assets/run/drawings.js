// Figures of one experiment: each function makes one and returns it with what shows another
// experiment in it; the words below a figure are there before it is.

// How far the longest arrow reaches, of the distance between arrows.
const REACH = 1.3;

function picture(element, cell, label, { below = 0 } = {}) {
  const [width, height] = cell.size;
  return new Chart(element, {
    label, aspect: width / height, x: { label: "u (px)", range: [-.5, width - .5] },
    y: { label: "v (px)", range: [-.5, height * (1 + below) - .5], flipped: true },
  });
}

function drawCoverage(element, cell) {
  const label = "How many corners lie where in the picture";
  const chart = picture(element, cell, label);
  const [width, height] = cell.size;
  if (cell.coverage.points) {
    const points = chart.empty("x", "y");
    chart.add("scatter", { ...fields("x", "y"), source: points, size: 7, marker: "circle",
      fill_alpha: .5 }, { line: "mark", fill: "mark" });
    return [chart, ({ coverage }) => {
      const [x, y] = columnsOf(coverage.points, 2);
      points.data = { x, y };
      chart.describe(`${label}: ${coverage.corners} corners`);
    }];
  }
  const heat = chart.empty("image");
  const { mapper } = chart.image(heat, "value", { x: -.5, y: -.5, dw: width, dh: height, low: 0,
    high: 1 });
  chart.colourBar(mapper, "corners");
  return [chart, ({ coverage: { columns, rows, counts, empty, corners } }) => {
    mapper.high = Math.max(...counts);
    heat.data = { image: raster(counts.map((n) => n || NaN), rows, columns) };
    chart.describe(`${label}: ${corners} corners; none in: ${empty.join(", ") || NONE}`);
  }];
}

function coverageWords(cell) {
  const { counts, corners, empty, points } = cell.coverage;
  const share = Math.round(100 * counts.filter((n) => n).length / counts.length);
  const many = strong(`${plural(corners, "corner")}${cell.ok ? " used" : " seen"}`);
  if (points) caption(byId("coverage"), many, ".");
  else caption(byId("coverage"), many, `, in ${share} % of the squares; blank ones have none.`,
  empty.length ? ` Nothing at all in: ${empty.join(", ")}.` : "");
}

// The largest of 1, 2, 5, 10, ... that is not above a length.
function round125(length) {
  const power = 10 ** Math.floor(Math.log10(length));
  return power * [5, 2, 1].find((digit) => digit * power <= length * (1 + 1e-9));
}

function columnsOf(flatValues, n) {
  return Array.from({ length: n }, (_, k) => flatValues.filter((_value, j) => j % n === k));
}

function arrowScale(cell) {
  const { longest, single } = cell.residuals;
  const spacing = cell.size[0] / (single ? 12 : 16);
  return longest > 0 ? REACH * spacing / longest : 0;
}

function drawVectors(element, cell) {
  const label = "Mean residual vectors over the picture";
  const chart = picture(element, cell, label, { below: .12 });
  const [width, height] = cell.size;
  const shafts = chart.empty("x0", "y0", "x1", "y1"), tips = chart.empty("x", "y", "angle");
  const text = chart.empty("x", "y", "text");
  const edge = chart.source({ x: [-.5, width - .5], y: [height - .5, height - .5] });
  chart.add("line", { ...fields("x", "y"), source: edge }, { line: "axis" });
  chart.add("segment", { ...fields("x0", "y0", "x1", "y1"), source: shafts, line_width: 1.5 },
    { line: "mark" });
  chart.add("scatter", { ...fields("x", "y", "angle"), source: tips, size: 6, marker: "triangle" },
    { line: "mark", fill: "mark" });
  chart.add("text", { ...fields("x", "y", "text"), source: text, text_baseline: "middle",
    text_font_size: "12px", x_offset: 8 }, { text: "ink" });
  return [chart, (shown) => {
    const [u, v, du, dv] = columnsOf(shown.residuals.arrows, 5);
    const scale = arrowScale(shown), { longest } = shown.residuals;
    if (longest > 0) {
      u.push(.03 * width);
      v.push(1.06 * height);
      du.push(round125(longest));
      dv.push(0);
    }
    const x1 = u.map((at, k) => at + scale * du[k]), y1 = v.map((at, k) => at + scale * dv[k]);
    shafts.data = { x0: u, y0: v, x1, y1 };
    tips.data = { x: x1, y: y1, angle: du.map((d, k) => Math.atan2(-dv[k], d) - Math.PI / 2) };
    text.data = longest > 0 ? { x: [x1.at(-1)], y: [1.06 * height],
      text: [`${round125(longest)} px`] } : noRows("x", "y", "text");
    chart.describe(`${label}; the longest is ${short(longest)} px`);
  }];
}

function vectorWords(cell) {
  const { longest, unlikely, single, arrows, rms } = cell.residuals;
  const n = arrows.length / 5;
  const words = single ? "Residual (observed minus projected) of every corner; the longest is "
    : "Mean residual (observed minus projected) of the corners in each square; the longest is ";
  const chance = single || unlikely === null ? "" : ` ${unlikely} of ${plural(n, "arrow")} are `
    + `longer than noise alone makes one of ${Math.round(1 / data.chance)}: `
    + `${Math.round(data.chance * n)} are to be expected, many more say that the model does not `
    + "fit the lens, the board or its corners.";
  const off = Math.abs(rms / cell.stated.rms_px - 1);
  const differs = off > .01 ? ` Found again here they have an RMS of ${short(rms)} px, not the `
    + `${short(cell.stated.rms_px)} px of the result.` : "";
  caption(byId("vectors"), words, strong(`${short(longest)} px`), `.${chance}${differs}`);
}

function drawHistogram(element) {
  const label = "Distribution of the residuals along both axes";
  const chart = new Chart(element, { label, height: 240,
    x: { label: "residual (px)", range: [-1, 1] },
    y: { label: "share of corners (%)", range: [0, 1] } });
  const bars = chart.empty("left", "right", "top");
  const steps = chart.empty("x", "y"), curve = chart.empty("x", "y");
  chart.add("quad", { ...fields("left", "right", "top"), bottom: 0, source: bars, fill_alpha: .35,
    line_alpha: .6 }, { fill: "mark", line: "mark" });
  const line = { ...fields("x", "y"), line_width: 2 };
  chart.add("line", { ...line, source: steps }, { line: "second" });
  chart.add("line", { ...line, source: curve, line_dash: "dashed" }, { line: "ink" });
  return [chart, (cell) => {
    const { reach, histogram: [along, across] } = cell.residuals, n = along.length;
    const size = 2 * reach / n, corners = sum(along);
    const share = (counts) => counts.map((count) => 100 * count / corners);
    const left = along.map((_, k) => -reach + k * size), right = left.map((x) => x + size);
    const sigma = cell.cornerSigma;
    const x = Array.from({ length: 181 }, (_, k) => reach * (k / 90 - 1));
    const y = x.map((at) => 100 * size * Math.exp(-.5 * (at / sigma) ** 2)
      / (sigma * Math.sqrt(2 * Math.PI)));
    const tops = [...share(along), ...share(across), ...(sigma > 0 ? y : [])];
    chart.axis("x", { range: [-reach, reach] });
    chart.axis("y", { range: [0, 1.05 * Math.max(...tops)] });
    bars.data = { left, right, top: share(along) };
    steps.data = { x: left.flatMap((at, k) => [at, right[k]]),
      y: share(across).flatMap((one) => [one, one]) };
    curve.data = sigma > 0 ? { x, y } : noRows("x", "y");
    chart.describe(`${label}, against a Gaussian of ${short(sigma)} px`);
  }];
}

function histogramWords(cell) {
  const { beyond, single } = cell.residuals;
  const parts = ["The corners' sigma is ", strong(`${short(cell.cornerSigma)} px`), " per axis"];
  if (beyond !== null) {
    parts.push("; beyond 3 sigma are ", strong(`${(100 * beyond).toFixed(2)} %`),
      " (0.27 % of a Gaussian). What is further out than the axis is in the last bars.");
  } else parts.push(".");
  if (cell.target === "drone") {
    parts.push(" A drone's residuals also hold the errors of its measured positions.");
  } else if (single) parts.push(" So few corners make a rough histogram.");
  caption(byId("histogram"), ...parts);
}

function drawUncertainty(element, cell) {
  const label = "How well it is known where a point is projected to, over the picture";
  const chart = picture(element, cell, label);
  const { steps } = cell.uncertainty;
  const heat = chart.empty("image");
  // The values are at points, the outermost in the middle of the outermost pixels.
  const [dx, dy] = cell.size.map((side) => (side - 1) / (steps - 1));
  const { mapper } = chart.image(heat, "error", { x: -dx / 2, y: -dy / 2, dw: steps * dx,
    dh: steps * dy, low: 1, high: 2, log: true });
  chart.colourBar(mapper, "px");
  return [chart, ({ uncertainty: { values }, projection }) => {
    const finite = values.filter((value) => value > 0);
    const [low, high] = [Math.min(...finite, 1e6), Math.max(...finite, 1e-12)];
    mapper.setv({ low: Math.min(low, high / 1.01), high });
    heat.data = { image: raster(values.map((value) => value ?? NaN), steps, steps) };
    chart.describe(`${label}: median ${short(projection.median)} px, `
      + `worst ${short(projection.worst)} px`);
  }];
}

function uncertaintyWords(cell) {
  const { median, worst, fixed_median: fixedMedian, fixed_worst: fixedWorst } = cell.projection;
  caption(byId("uncertainty"), "Standard deviation of a projected point, in its worst direction: "
    + "median ", strong(`${short(median)} px`), ", at worst ", strong(`${short(worst)} px`),
  ". What a small turn of the camera undoes is not counted; with a fixed orientation it is "
    + `${short(fixedMedian)} px and ${short(fixedWorst)} px.`);
}

function mostExaggerated(cell) {
  const { largest } = cell.distortion;
  const wanted = largest ? .07 * cell.size[0] / largest : 1;
  return wanted > 1 ? round125(wanted) : 1;
}

function exaggeration(cell) { return byId("exaggerate").value ? 1 : mostExaggerated(cell); }

function drawDistortion(element, cell) {
  const label = "Straight lines as the lens shows them";
  const chart = picture(element, cell, label);
  const ideal = chart.empty("xs", "ys"), bent = chart.empty("xs", "ys");
  const paths = fields("xs", "ys");
  chart.add("multi_line", { ...paths, source: ideal, line_dash: "dotted" }, { line: "quiet" });
  chart.add("multi_line", { ...paths, source: bent, line_width: 1.5 }, { line: "mark" });
  return [chart, (shown) => {
    const { columns, rows, shift, largest } = shown.distortion, [width, height] = shown.size;
    const times = exaggeration(shown);
    const node = (row, column, by) => {
      const at = 2 * (row * columns + column);
      const [du, dv] = [shift[at], shift[at + 1]].map((value) => (by ? by * (value ?? NaN) : 0));
      return [column * (width - 1) / (columns - 1) + du, row * (height - 1) / (rows - 1) + dv];
    };
    const count = (n) => Array.from({ length: n }, (_, k) => k);
    const every = (n) => count(n).filter((k) => k % 2 === 0);
    const lines = [...every(rows).map((row) => count(columns).map((column) => [row, column])),
      ...every(columns).map((column) => count(rows).map((row) => [row, column]))];
    const drawn = (by) => xysOf(lines.map((line) => line.map((at) => node(...at, by))));
    ideal.data = drawn(0);
    bent.data = drawn(times);
    chart.describe(`${label}: up to ${short(largest)} px`);
  }];
}

function distortionWords(cell) {
  const { largest, at } = cell.distortion;
  const times = exaggeration(cell);
  byId("distortion").querySelector(".tools").hidden = mostExaggerated(cell) === 1;
  caption(byId("distortion"), "Dotted: an ideal lens. ",
    ...(largest === null ? ["The model folds over within the whole picture."] : [
      "The largest shift is ", strong(`${short(largest)} px`),
      `, at u ${Math.round(at[0])}, v ${Math.round(at[1])}.`,
      ` Shifts are drawn ${times > 1 ? `${times} times as large` : "true to scale"}.`]));
}

function drawViews(element) {
  const label = "RMS of the residuals of each view";
  const chart = new Chart(element, { label, height: 180, x: { label: "view", range: [0, 1] },
    y: { label: "RMS (px)", range: [0, 1] } });
  const used = chart.empty("x", "y"), dropped = chart.empty("x", "y"), xy = fields("x", "y");
  chart.add("scatter", { ...xy, source: used, size: 6, marker: "circle" },
    { line: "mark", fill: "mark" });
  chart.add("scatter", { ...xy, source: dropped, size: 6, marker: "x", line_width: 1.5 },
    { line: "warn" });
  return [chart, (cell) => {
    const rows = [true, false].map((kept) => cell.views.filter((view) => (view[1] < 0) === kept));
    const numbers = cell.views.map(([view]) => view);
    const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
    const margin = .03 * (last - first) || 1;
    const high = Math.max(...rows[0].map((view) => view[4]), 1e-9);
    chart.axis("x", { range: [first - margin, last + margin] });
    chart.axis("y", { range: [-.08 * high, 1.1 * high] });
    used.data = xyOf(rows[0].map((view) => [view[0], view[4]]));
    dropped.data = xyOf(rows[1].map((view) => [view[0], 0]));
    chart.describe(`${label}: ${rows[0].length} used, ${rows[1].length} not`);
  }];
}
