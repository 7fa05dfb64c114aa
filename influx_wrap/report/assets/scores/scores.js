const COLOURS = 7, DASHES = [[], [7, 3], [2, 2], [8, 3, 2, 3]];
const HEIGHT = 100, BAND = 6;
const hidden = new Set();
const byId = (id) => document.getElementById(id);
const colourName = (method) => `m${method % COLOURS}`;
const dashOf = (method) => DASHES[method % DASHES.length];

function drawing(width, height, ...children) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.append(...children);
  return svg;
}

function path(name, d, method = null, filled = false) {
  const element = document.createElementNS(SVG, "path");
  element.setAttribute("class", name);
  element.setAttribute("d", d);
  const ink = `var(--${method === null ? "ink" : colourName(method)})`;
  if (name === "grid") return element;
  element.style.stroke = filled ? "none" : ink;
  if (method !== null && !filled) element.style.strokeDasharray = dashOf(method).join(" ");
  if (filled || name === "range") element.style.fill = ink;
  return element;
}

function swatch(method) {
  const svg = drawing(30, 10, path("line", "M0 5H30", method));
  svg.setAttribute("class", "swatch");
  svg.firstChild.style.strokeWidth = "3px";
  return svg;
}

function tick(kind, text, style) {
  return make("span", { class: `tick ${kind}`, style, "aria-hidden": "true" }, text);
}

/* Tables */

function compare(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
  return down ? -order : order;
}

function tableOf(content, caption) {
  const heads = content.headings.map((heading, place) => {
    const button = make("button", { type: "button" }, heading.text);
    const isName = content.rows.length > 0 && typeof content.rows[0][place].key === "string";
    const head = make("th", { scope: "col", class: isName ? "name" : "" }, button);
    button.addEventListener("click", () => sort(place));
    return head;
  });
  const body = make("tbody", {}, ...content.rows.map((row) => make("tr", {}, ...row.map(cellOf))));
  const rows = [...body.children];
  function sort(place) {
    const now = heads[place].getAttribute("aria-sort");
    const down = now ? now === "ascending" : content.headings[place].down;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[place].setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = content.rows.map((row, number) => number);
    order.sort((a, b) => compare(content.rows[a][place].key, content.rows[b][place].key, down));
    body.append(...order.map((number) => rows[number]));
  }
  const table = make("table", { "aria-label": caption },
    make("thead", {}, make("tr", {}, ...heads)), body);
  return make("div", { class: "wide" }, table);
}

function cellOf(cell) {
  const text = make("span", { class: cell.best ? "best value" : "value" }, cell.text);
  const element = typeof cell.key === "string"
    ? make("th", { scope: "row", class: "name" }, text)
    : make("td", cell.key === null ? {} : { "data-value": cell.key }, text);
  if (cell.method !== undefined) element.prepend(swatch(cell.method));
  if (cell.note) element.append(make("small", {}, cell.note));
  if (typeof cell.bar === "number") {
    element.append(make("span", { class: "bar", style: `width:${cell.bar}%` }));
  }
  return element;
}

/* Left and right, with Shift in larger steps. */

function onArrows(owner, move) {
  owner.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== owner) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    move(step * (event.shiftKey ? 10 : 1));
    event.preventDefault();
  };
}

/* Cumulative curves: a figure for each kind of axis, made when it is first looked at. */

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
  let low = 0, high = bins.length - 1;
  if (bin >= bins[high]) return curve.shares[high] / data.shareUnits;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (bins[middle] <= bin) low = middle; else high = middle;
  }
  const part = (bin - bins[low]) / (bins[high] - bins[low]);
  const share = curve.shares[low] + part * (curve.shares[high] - curve.shares[low]);
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
    line_dash: [2, 3] }, { line: "warn" });
  figure.add("text", { ...at, source: figure.source({ px: [data.threshold], percent: [2] }),
    text: { value: `${data.threshold} px` }, x_offset: 5, text_font_size: "12px" },
  { text: "warn" });
  const lines = data.curves.map((curve, method) => figure.add("line", { ...at, line_width: 2,
    source: figure.source(pointsOf(curve, axis.range[0])), line_dash: dashOf(method) },
  { line: colourName(method) }));
  const cursor = figure.source({ px: [], percent: [] });
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

/* Videos: each has a small drawing of its own. A figure of the library costs a hundred times as
   much to make, which 386 videos at a time of scrolling cannot have. */

function decoded(text) {
  return new Float32Array(Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0)).buffer);
}

function outline(low, high, y) {
  const pieces = [];
  for (let start = 0; start < low.length; start += 1) {
    if (Number.isNaN(low[start])) continue;
    let end = start;
    while (end + 1 < low.length && !Number.isNaN(low[end + 1])) end += 1;
    const there = [], back = [];
    for (let k = start; k <= end; k += 1) {
      there.push(`${k} ${y(high[k])}`, `${k + 1} ${y(high[k])}`);
      back.push(`${k} ${y(low[k])}`, `${k + 1} ${y(low[k])}`);
    }
    pieces.push(`M${there.join("L")}L${back.reverse().join("L")}Z`);
    start = end;
  }
  return pieces.join("");
}

function bars(missing, wanted, top) {
  return missing.flatMap((count, k) => (wanted(count) ? [`M${k} ${top}h1v${BAND - 2}h-1Z`] : []))
    .join("");
}

function extremes(arrays) {
  let low = Infinity, high = -Infinity;
  for (const values of arrays) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}

function round(value) {
  return Math.abs(value) >= 1e6 ? value.toExponential(2) : value.toFixed(value < 100 ? 1 : 0);
}

function span(low, high) {
  return round(low) === round(high) ? round(low) : `${round(low)} to ${round(high)}`;
}

/* A line that is moved over a strip by pointer or keys. */

function addCursor(plot, strip, columns, read) {
  const line = make("div", { class: "cursor", hidden: "" });
  let at = null;
  plot.append(line);
  function put(share) {
    at = clamp(share, 0, 1);
    line.hidden = false;
    line.style.left = `${100 * at}%`;
    strip.readout.textContent = read(at);
  }
  function point(event) {
    const bounds = plot.getBoundingClientRect();
    put((event.clientX - bounds.left) / bounds.width);
  }
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  onArrows(strip.section, (steps) => put(at === null ? 0.5 / columns : at + steps / columns));
}

function drawStrip(strip) {
  const video = strip.video;
  if (!video.true) return;
  const truth = video.true.map(decoded), columns = truth[0].length;
  const shownMethods = video.methods.flatMap((one, method) => (
    one.predicted && !hidden.has(method)
      ? [{ method, missing: one.missing, ends: one.predicted.map(decoded) }] : []));
  const [trueLow, trueHigh] = extremes(truth);
  const [allLow, allHigh] = extremes([...truth, ...shownMethods.flatMap((one) => one.ends)]);
  // What is further off than a factor of two is written at the edge: drawn to scale it would
  // make a line of the truth.
  const smallest = Math.max(trueLow, 1e-3);
  const low = Math.max(Math.min(allLow, smallest / 1.05), smallest / 2);
  const high = Math.min(Math.max(allHigh, trueHigh * 1.05), Math.max(trueHigh, smallest) * 2);
  const range = Math.log(high / low);
  const y = (fx) => (HEIGHT * (1 - clamp(Math.log(Math.max(fx, 1e-9) / low) / range, 0, 1)))
    .toFixed(2);
  const height = HEIGHT + BAND * shownMethods.length;
  const shapes = shownMethods.flatMap(({ method, ends, missing }, place) => {
    const top = HEIGHT + BAND * place + 2;
    const line = path("range", outline(...ends, y), method);
    line.dataset.method = method;
    if (!missing) return [line];
    return [line, path("some", bars(missing, (count) => count > 0, top), method, true),
      path("none", bars(missing, (count) => count < 0, top), method, true)];
  });
  const svg = drawing(columns, height, ...shapes, path("range", outline(...truth, y)),
    path("grid", `M0 ${HEIGHT}H${columns}`));
  svg.style.height = `${height}px`;
  const plot = make("div", { class: "plot" }, svg,
    tick("y", round(high), "top:0"),
    tick("y", round(low), `top:${HEIGHT}px`),
    tick("x first", `frame ${video.first}`, "left:0"),
    tick("x last", `${video.last}`, "left:100%"));
  if (allHigh > high) plot.append(tick("beyond", `\u25b2 up to ${round(allHigh)}`, "top:.3rem"));
  if (allLow < low) {
    plot.append(tick("beyond", `\u25bc down to ${round(allLow)}`, `top:${HEIGHT - 16}px`));
  }
  const read = (share) => {
    const k = Math.min(Math.floor(share * columns), columns - 1);
    const from = video.first + k * video.step, to = Math.min(from + video.step - 1, video.last);
    const frames = from === to ? `frame ${from}` : `frames ${from} to ${to}`;
    if (Number.isNaN(truth[0][k])) return `${frames}: no interpolated ground truth`;
    const said = shownMethods.map(({ method, ends, missing }) => {
      const count = missing ? Math.abs(missing[k]) : 0;
      const without = count ? `${count} without` : "";
      const value = Number.isNaN(ends[0][k]) ? "" : span(ends[0][k], ends[1][k]);
      return `${data.methods[method]} ${[value, without].filter(Boolean).join(", ")}`;
    });
    return [`${frames}: true ${span(truth[0][k], truth[1][k])}`, ...said].join("; ");
  };
  addCursor(plot, strip, columns, read);
  strip.holder.replaceChildren(plot);
  strip.readout.textContent = "";
  strip.stale = false;
}

function buildStrip(video, number) {
  const holder = make("div", {}), readout = make("div", { class: "readout number", role: "status" });
  const legend = make("ul", { class: "legend" });
  legend.append(make("li", {}, swatch(null), "truth"));
  video.methods.forEach((one, method) => {
    const words = one.fx ? `fx error ${one.fx[0]} %, EPE < ${data.threshold} px ${one.below[0]} %, `
      + `${one.frames} frames predicted` : "not evaluated";
    legend.append(make("li", {}, swatch(method), `${data.methods[method]} `,
      make("span", { class: "words number" }, words)));
  });
  const frames = `${video.frames} ${video.frames === 1 ? "frame" : "frames"}`;
  const section = make("div", { class: "card strip", role: "group", tabindex: "0",
    "aria-label": video.name }, make("h3", {}, video.name));
  if (video.true) {
    holder.append(make("div", { class: "plot" }));
    section.append(make("div", { class: "words number" }, frames), holder, readout, legend);
  } else {
    section.append(make("p", { class: "empty" }, "No frame has interpolated ground truth."));
  }
  return { video, section, holder, readout, number, stale: true, near: false };
}

const strips = data.videos.map(buildStrip);
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const strip = strips[Number(entry.target.dataset.number)];
    strip.near = entry.isIntersecting;
    if (strip.near && strip.stale) drawStrip(strip);
  }
}, { rootMargin: "600px" });

function redrawStrips() {
  for (const strip of strips) {
    strip.stale = true;
    if (strip.near) drawStrip(strip);
  }
}

/* How bad a video is: no prediction is worse than any, and no frames are not bad at all. */

function badness(strip, by, method) {
  const one = strip.video.methods[method];
  if (!one.fx || !strip.video.frames) return -Infinity;
  if (by === "below") return one.below[1] === null ? -Infinity : -one.below[1];
  return one.fx[1] === null ? Infinity : one.fx[1];
}

function arrangeStrips() {
  const by = byId("by").value, method = Number(byId("of").value);
  const wanted = byId("filter").value.trim().toLowerCase();
  const order = (a, b) => (a === b ? 0 : b > a ? 1 : -1);
  const sorted = [...strips].sort((a, b) => {
    const first = by === "name" ? 0 : order(badness(a, by, method), badness(b, by, method));
    const second = by === "below" ? order(badness(a, "fx", method), badness(b, "fx", method)) : 0;
    return first || second
      || a.video.name.localeCompare(b.video.name, undefined, { numeric: true });
  });
  let count = 0;
  for (const strip of sorted) {
    strip.section.hidden = !strip.video.name.toLowerCase().includes(wanted);
    count += strip.section.hidden ? 0 : 1;
  }
  byId("strips").replaceChildren(...sorted.map((strip) => strip.section));
  byId("count").textContent = `${count} of ${strips.length} videos`;
}

function goStrip(step) {
  const shownStrips = [...byId("strips").children].filter((section) => !section.hidden);
  if (!shownStrips.length) return;
  const focused = document.activeElement && document.activeElement.closest(".strip");
  const at = shownStrips.indexOf(focused);
  const next = shownStrips[clamp(at + step, 0, shownStrips.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

// The address names the video that is looked at, so that it can be linked to.
function goLinked() {
  const wanted = addressed();
  const strip = strips.find(({ video }) => video.name === wanted);
  if (!strip) return;
  if (strip.section.hidden) {
    byId("filter").value = "";
    arrangeStrips();
  }
  strip.section.focus();
  strip.section.scrollIntoView({ block: "nearest" });
}

byId("used").append(...data.used.map((text) => make("li", {}, text)));
byId("table").append(tableOf(data.table, "Scores of all frames"));
for (const group of data.groups) {
  byId("groups").append(make("h2", {}, `By ${group.by}`), tableOf(group, `Scores by ${group.by}`));
}
buildChart();
data.methods.forEach((name, method) => byId("of").add(new Option(name, method)));
strips.forEach((strip) => {
  strip.section.dataset.number = strip.number;
  strip.section.addEventListener("focus", () => {
    history.replaceState(null, "", `#${encodeURIComponent(strip.video.name)}`);
  });
  watcher.observe(strip.section);
});
arrangeStrips();
byId("filter").addEventListener("input", arrangeStrips);
byId("by").addEventListener("change", arrangeStrips);
byId("of").addEventListener("change", arrangeStrips);
window.addEventListener("hashchange", goLinked);
goLinked();
window.addEventListener("beforeprint", () => {
  strips.filter((strip) => strip.stale).forEach(drawStrip);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("select, input:not([type=checkbox])")) return;
  if (event.key === "l") byId("axis").click();
  else if (event.key === "/") byId("filter").focus();
  else if (event.key === "n") goStrip(1);
  else if (event.key === "p") goStrip(-1);
  else return;
  event.preventDefault();
});
