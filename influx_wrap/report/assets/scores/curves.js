// Cumulative curves: a figure for each kind of axis, made when it is first looked at.

const CURSOR_STEPS = 200;
for (const curve of data.curves) {
  let bin = 0, share = 0;
  curve.bins = curve.bins.map((step) => (bin += step));
  curve.shares = curve.shares.map((step) => (share += step));
}
const curves = { log: true, figures: new Map(), px: null, first: 1 / data.binsPerPx,
  last: Math.max(2 * data.threshold,
    ...data.curves.map((curve) => (curve.bins.at(-1) ?? 0) / data.binsPerPx)),
  readout: make("div", { class: "readout number", role: "status" }) };

function shareBelow(curve, px) {
  const bin = px * data.binsPerPx, bins = curve.bins;
  if (bin >= bins.at(-1)) return curve.shares.at(-1) / data.shareUnits;
  const low = placeBelow(bin, bins.length, (k) => bins[k]);
  const part = (bin - bins[low]) / (bins[low + 1] - bins[low]);
  const share = curve.shares[low] + part * (curve.shares[low + 1] - curve.shares[low]);
  return share / data.shareUnits;
}

function axisOf(log) {
  const { first, last } = curves;
  const ticks = [];
  if (log) {
    const range = Math.log(last / first);
    for (let px = first; px <= last * 1.001; px *= 10) ticks.push(Number(px.toPrecision(1)));
    return { ticks, range: [first, last], place: (px) => Math.log(Math.max(px, first) / first) / range,
      px: (share) => first * Math.exp(share * range) };
  }
  const step = [50, 100, 200, 500, 1000, 2000].find((size) => last / size <= 8) || 5000;
  for (let px = 0; px <= last; px += step) ticks.push(px);
  return { ticks, range: [0, last], place: (px) => px / last, px: (share) => share * last };
}

function pointsOf(curve, from) {
  if (!curve.bins.length) return { px: [], percent: [] };
  const px = [], percent = [];
  const add = (at, share) => { px.push(at); percent.push(100 * share); };
  if (from > 0) add(from, shareBelow(curve, from));
  curve.bins.forEach((bin, k) => {
    if (bin / data.binsPerPx > from || from === 0) {
      add(bin / data.binsPerPx, curve.shares[k] / data.shareUnits);
    }
  });
  add(curves.last, curve.shares.at(-1) / data.shareUnits);
  return { px, percent };
}

function makeCurves(log) {
  const axis = axisOf(log), place = make("div", {});
  byId("plot").append(place);
  const figure = new Chart(place, {
    label: `Curves of ${data.methods.length} methods: how many per cent of the pairs have an `
      + "end-point error below a number of pixels. The arrow keys read them off.",
    x: { label: "end-point error (px)", range: axis.range, log,
      ticks: axis.ticks.map((px) => [px, String(px)]) },
    y: { label: "pairs below it (%)", range: [0, 101] }, height: 340,
  });
  const at = { x: { field: "px" }, y: { field: "percent" } };
  const upright = (px) => figure.source({ px: [px, px], percent: [0, 101] });
  figure.add("line", { ...at, source: upright(data.threshold), line_width: 1.5,
    ...dashes(2, 3) }, { line: "warn" });
  figure.add("text", { ...at, source: figure.source({ px: [data.threshold], percent: [2] }),
    text: { value: `${data.threshold} px` }, x_offset: -5, text_align: "right",
    text_font_size: "12px" },
  { text: "warn" });
  const lines = data.curves.map((curve, method) => figure.add("line", { ...at, line_width: 2,
    source: figure.source(pointsOf(curve, axis.range[0])), ...dashes(...dashOf(method)) },
  { line: colourName(method) }));
  const cursor = figure.empty("px", "percent");
  figure.add("line", { ...at, source: cursor, line_width: 1 }, { line: "ink" });
  for (const event of ["mousemove", "tap"]) figure.on(event, (px) => readAt(px));
  return { place, axis, lines, cursor };
}

function drawCurves() {
  if (!curves.figures.has(curves.log)) curves.figures.set(curves.log, makeCurves(curves.log));
  for (const [log, { place, lines, cursor }] of curves.figures) {
    place.hidden = log !== curves.log;
    lines.forEach((line, method) => { line.visible = !hidden.has(method); });
    if (curves.px !== null) cursor.data = { px: [curves.px, curves.px], percent: [0, 101] };
  }
  byId("axis").setAttribute("aria-pressed", curves.log);
}

function readAt(px) {
  const [low, high] = curves.figures.get(curves.log).axis.range;
  curves.px = clamp(px, low, high);
  const values = data.curves.flatMap((curve, method) => (hidden.has(method) || !curve.bins.length
    ? [] : [`${data.methods[method]} ${(100 * shareBelow(curve, curves.px)).toFixed(1)} %`]));
  const shownPx = curves.px.toFixed(curves.px < 10 ? 1 : 0);
  curves.readout.textContent = `below ${shownPx} px: ${values.join(", ")}`;
  drawCurves();
}

function buildChart() {
  const legend = make("ul", { class: "legend" });
  data.methods.forEach((name, method) => {
    const box = make("input", { type: "checkbox", checked: "" });
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(method); else hidden.add(method);
      if (curves.px === null) drawCurves(); else readAt(curves.px);
      redrawStrips();
    });
    legend.append(make("li", {}, make("label", {}, box, " ", swatch(method), name), " ",
      make("span", { class: "words number" }, data.curves[method].words)));
  });
  byId("chart").append(curves.readout, legend);
  onArrows(byId("chart"), (steps) => {
    drawCurves();
    const { axis } = curves.figures.get(curves.log);
    const from = curves.px === null ? 0 : axis.place(curves.px);
    readAt(axis.px(clamp(from + steps / CURSOR_STEPS, 0, 1)));
  });
  byId("axis").addEventListener("click", () => { curves.log = !curves.log; drawCurves(); });
  whenSeen(byId("plot"), drawCurves);
}
