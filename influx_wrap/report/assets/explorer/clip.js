// A clip in the lens explorer: its metadata, read on this page, its path through the plane of
// settings, and its intrinsics over time.

const MOST_COLUMNS = 900, MOST_STEPS = 6000;
const NOT_TOLD_STATUS = 4;
const PARTS = [
  { words: "interpolated", mark: "\u2501" }, { words: "extrapolated", mark: "\u2505" },
  { words: "LFL outside the table", mark: "\u2573" }, { words: "nearer than the lens can focus",
    mark: "\u2573" }, { words: "not told by the lens", mark: "\u2591" },
];

// The clip that is looked at: {name, frame, lfl, fd, answers: {scheme: {status, values, sigmas}}}.
let clip = null;
let place = 0;
// Files that were given so far: only the last is wanted.
let taken = 0;
const timeline = {};

function listenForFiles() {
  let inside = 0;
  const show = (by) => {
    inside = Math.max(inside + by, 0);
    byId("drop").hidden = inside === 0;
  };
  const isFile = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragenter", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    show(1);
  });
  addEventListener("dragleave", (event) => { if (isFile(event)) show(-1); });
  addEventListener("dragover", (event) => { if (isFile(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    show(-inside);
    takeFiles([...event.dataTransfer.files]);
  });
  byId("file").addEventListener("change", () => {
    takeFiles([...byId("file").files]);
    byId("file").value = "";
  });
  byId("over-time").append(...NAMES.map((name, k) => new Option(withUnit(name, k), k)));
  byId("over-time").addEventListener("change", drawTimeline);
  byId("frame").addEventListener("input", () => goTo(Number(byId("frame").value)));
  byId("forget").addEventListener("click", () => {
    clip = null;
    leaveFrame();
    byId("clip-words").textContent = "The clip is removed.";
    drawClip();
    // The button is gone with the clip.
    byId("file").focus();
  });
}

async function takeFiles(files) {
  const words = byId("clip-words");
  if (files.length !== 1) {
    words.textContent = `${files.length} files were given: give one at a time.`;
    return;
  }
  const [file] = files;
  taken += 1;
  const number = taken;
  words.textContent = `Reading ${file.name} \u2026`;
  // So that the words are seen before a long file keeps the page busy.
  await new Promise((resolve) => { setTimeout(resolve, 20); });
  const { read, fault } = await readClip(file);
  // A file that was given later may have been read sooner.
  if (number !== taken) return;
  if (fault) {
    words.textContent = fault;
    return;
  }
  clip = { name: file.name, ...read, answers: {} };
  place = 0;
  leaveFrame();
  drawClip();
  byId("clip").scrollIntoView({ block: "nearest" });
}

// What a file tells, or why nobody can read it.
async function readClip(file) {
  try {
    return { read: readMetadata(file.name, await file.arrayBuffer()) };
  } catch (error) {
    return { fault: error instanceof Fault ? error.message
      : `${file.name} cannot be read: it is a folder, or too large.` };
  }
}

// A frame without a setting has left the cursor nowhere.
function leaveFrame() {
  if (!state.words) return;
  moveTo(beginning.lfl, beginning.fd);
  setPinned(false);
}

// Answers for all frames with a scheme: status (n,), values and sigmas (n x 8).
function answersOf(scheme) {
  if (clip.answers[scheme]) return clip.answers[scheme];
  const lookup = lookupOf(scheme), n = clip.frame.length, c = NAMES.length;
  const status = new Uint8Array(n);
  const values = new Float64Array(n * c).fill(NaN), sigmas = new Float64Array(n * c).fill(NaN);
  for (let k = 0; k < n; k += 1) {
    const lfl = clip.lfl[k], fd = clip.fd[k];
    if (k > 0 && lfl === clip.lfl[k - 1] && fd === clip.fd[k - 1]) {
      status[k] = status[k - 1];
      values.copyWithin(k * c, (k - 1) * c, k * c);
      sigmas.copyWithin(k * c, (k - 1) * c, k * c);
      continue;
    }
    if (Number.isNaN(lfl) || Number.isNaN(fd)) { status[k] = NOT_TOLD_STATUS; continue; }
    const answer = query(lookup, lfl, fd);
    status[k] = answer.status;
    if (!answer.intrinsics) continue;
    values.set(answer.intrinsics, k * c);
    sigmas.set(sigmaOf(lookup, answer), k * c);
  }
  clip.answers[scheme] = { status, values, sigmas };
  return clip.answers[scheme];
}

function drawClip() {
  byId("clip-shown").hidden = clip === null;
  drawPath();
  if (!clip) return;
  const { status } = answersOf(state.scheme), n = clip.frame.length;
  const counts = new Array(PARTS.length).fill(0);
  for (const one of status) counts[one] += 1;
  const unlisted = clip.frame[n - 1] + 1 - n;
  const listed = PARTS.flatMap(({ words, mark }, k) => (counts[k] || k === 0 ? [make("li", {
    "data-status": String(k), "data-value": String(counts[k]) }, `${mark} ${counts[k]} ${words}`)]
    : []));
  if (unlisted) {
    listed.push(make("li", { "data-status": "unlisted", "data-value": String(unlisted) },
      `${unlisted} not listed in the file`));
  }
  byId("counts").replaceChildren(...listed);
  const answered = counts[0] + counts[1];
  byId("clip-words").textContent = answered ? `${clip.name}: ${plural(n, "frame")}.`
    : `${clip.name}: none of its ${n} frames can be answered. Is this the table of its lens?`;
  byId("frame").max = String(n - 1);
  byId("frame").value = String(place);
  sayFrame();
  if (timeline.chart) drawTimeline(); else whenSeen(byId("time"), makeTimeline);
}

/* Its path through the plane */

function drawPath() {
  if (!plane.chart) return;
  let parts = plane.path.map(() => noRows("x", "y"));
  // Nobody could follow more steps: of a long clip that jumps about, frames are left out.
  if (clip) {
    for (let stride = 1; stride <= clip.frame.length; stride *= 2) {
      parts = pathOf(stride);
      if (parts[0].x.length + parts[1].x.length < MOST_STEPS) break;
    }
  }
  plane.path.forEach((source, k) => { source.data = parts[k]; });
  plane.stays.forEach((source, k) => { source.data = staysOf(parts[k]); });
}

// Points of a path without neighbours: as lines nobody would see them.
function staysOf({ x, y }) {
  const alone = [...x.keys()].filter((k) => Number.isFinite(x[k])
    && !Number.isFinite(x[k - 1]) && !Number.isFinite(x[k + 1]));
  return xyOf(alone.map((k) => [x[k], y[k]]));
}

// Lines of interpolated and of extrapolated frames, without steps that nobody sees.
function pathOf(stride) {
  const parts = [noRows("x", "y"), noRows("x", "y")], { status } = answersOf(state.scheme);
  const [from, to] = axis().range, reach = [to - from, vRange[1] - vRange[0]];
  let before = null;
  for (let k = 0; k < clip.frame.length; k += stride) {
    const own = parts[status[k]];
    if (!own) { before = null; continue; }
    const [u, v] = toPlane(clip.lfl[k], clip.fd[k]);
    const moved = before && Math.hypot((u - before.u) / reach[0], (v - before.v) / reach[1]);
    if (before && moved < 0.002) continue;
    if (before?.own !== own) {
      own.x.push(NaN);
      own.y.push(NaN);
      // The line goes on from where the other kind ended.
      if (before) {
        own.x.push(before.u);
        own.y.push(before.v);
      }
    }
    own.x.push(u);
    own.y.push(v);
    before = { u, v, own };
  }
  return parts;
}

/* Its intrinsics over time */

function makeTimeline() {
  if (!clip || timeline.chart) return;
  const chart = new Chart(byId("time"), {
    label: "Intrinsics over time", height: 260, x: { label: "frame", range: [0, 1] },
    y: { label: "", range: [0, 1] },
  });
  Object.assign(timeline, {
    chart, lines: [chart.empty("x", "y"), chart.empty("x", "y")], bands: chart.empty("xs", "ys"),
    gaps: chart.empty("left", "right", "bottom", "top", "hatch"),
    now: chart.empty("x0", "y0", "x1", "y1"), at: chart.empty("x", "y"),
  });
  const at = fields("x", "y");
  chart.add("patches", { ...fields("xs", "ys"), source: timeline.bands,
    fill_alpha: 0.22, line_alpha: 0 }, { fill: "mark" });
  chart.add("line", { ...at, source: timeline.lines[0], line_width: 2 }, { line: "mark" });
  chart.add("line", { ...at, source: timeline.lines[1], line_width: 2, ...dashes(5, 3) },
    { line: "warn" });
  chart.add("quad", { ...fields("left", "right", "top", "bottom"), source: timeline.gaps,
    fill_alpha: 0.25, line_alpha: 0, hatch_pattern: { field: "hatch" }, hatch_scale: 7,
    hatch_weight: 1 },
  { fill: "quiet", hatch: "ink" });
  chart.add("segment", { ...fields("x0", "y0", "x1", "y1"), source: timeline.now,
    level: "overlay" }, { line: "ink" });
  chart.add("scatter", { ...at, source: timeline.at, level: "overlay", marker: "circle", size: 9 },
    { line: "ink", fill: "warn" });
  for (const kind of ["tap", "press"]) chart.on(kind, (x) => goTo(nearestFrame(x)));
  drawTimeline();
}

function nearestFrame(x) {
  const { frame } = clip, low = placeBelow(x, frame.length, (k) => frame[k]);
  const high = Math.min(low + 1, frame.length - 1);
  return Math.abs(frame[low] - x) <= Math.abs(frame[high] - x) ? low : high;
}

// The clip cut into columns of as many frames: places [first, last] of each, or null where none
// is listed.
function columnsOf() {
  const [first, last] = [clip.frame[0], clip.frame.at(-1)];
  const step = Math.max(Math.ceil((last - first + 1) / MOST_COLUMNS), 1);
  const cut = new Array(Math.floor((last - first) / step) + 1).fill(null);
  clip.frame.forEach((frame, k) => {
    const column = Math.floor((frame - first) / step);
    if (cut[column]) cut[column][1] = k; else cut[column] = [k, k];
  });
  return { cut, step };
}

// Of a column's frames with a status the first, least, greatest and last, in their order: as a
// line they look like all of them.
function extremes([first, last], kind, status, value) {
  const rows = [];
  let low = -1, high = -1;
  for (let k = first; k <= last; k += 1) {
    if (status[k] !== kind) continue;
    if (low < 0 || value(k) < value(low)) low = k;
    if (high < 0 || value(k) > value(high)) high = k;
    rows[0] ??= k;
    rows[1] = k;
  }
  return [...new Set([rows[0], Math.min(low, high), Math.max(low, high), rows[1]])]
    .filter((row) => row >= 0);
}

function drawTimeline() {
  if (!timeline.chart || !clip) return;
  const c = NAMES.length, k = Number(byId("over-time").value);
  const { status, values, sigmas } = answersOf(state.scheme), { cut, step } = columnsOf();
  const value = (row) => values[row * c + k];
  const lines = [noRows("x", "y"), noRows("x", "y")], bands = [], gaps = [];
  let low = Infinity, high = -Infinity, before = [[], []], band = null;
  for (const [number, column] of cut.entries()) {
    const left = clip.frame[0] + number * step - 0.5;
    const now = lines.map((_, kind) => (column ? extremes(column, kind, status, value) : []));
    now.forEach((rows, kind) => {
      if (!rows.length) return;
      const { x, y } = lines[kind], other = before[1 - kind].at(-1);
      if (!before[kind].length) {
        x.push(NaN);
        y.push(NaN);
        // The line goes on from where the other kind ended.
        if (clip.frame[other] === clip.frame[rows[0]] - 1) rows = [other, ...rows];
      }
      for (const row of rows) {
        x.push(clip.frame[row]);
        y.push(value(row));
      }
      // A frame without neighbours is a short line, or nobody would see it.
      if (rows.length === 1 && !before[kind].length) {
        x.push(clip.frame[rows[0]] + 0.5);
        y.push(value(rows[0]));
      }
    });
    before = now;
    let least = Infinity, most = -Infinity;
    for (let row = column?.[0]; row <= column?.[1]; row += 1) {
      if (status[row] > STATUS.EXTRAPOLATED) {
        markGap(gaps, status[row] === NOT_TOLD_STATUS ? "dot" : "cross", left, step);
        continue;
      }
      // Where sigma is not known, the band is as narrow as the line.
      const sigma = sigmas[row * c + k] || 0;
      least = Math.min(least, value(row) - sigma);
      most = Math.max(most, value(row) + sigma);
    }
    if (least > most) { band = null; continue; }
    if (!band) bands.push(band = { x: [], low: [], high: [] });
    band.x.push(left + step / 2);
    band.low.push(least);
    band.high.push(most);
    low = Math.min(low, least);
    high = Math.max(high, most);
  }
  if (low > high) [low, high] = [0, 1];
  const pad = 0.06 * (high - low) || Math.abs(high) * 1e-3 || 1;
  const range = [low - 2 * pad, high + pad], ends = [clip.frame[0], clip.frame.at(-1)];
  timeline.range = range;
  timeline.chart.axis("y", { range, label: withUnit(NAMES[k], k) });
  timeline.chart.axis("x", { range: [ends[0] - 0.5, Math.max(ends[1], ends[0] + 1) + 0.5] });
  timeline.lines.forEach((source, kind) => { source.data = lines[kind]; });
  timeline.bands.data = {
    xs: bands.map(({ x }) => [...x, ...x.toReversed()]),
    ys: bands.map((one) => [...one.low, ...one.high.toReversed()]),
  };
  timeline.gaps.data = {
    left: gaps.map((gap) => gap.left), right: gaps.map((gap) => gap.right),
    bottom: gaps.map(() => range[0]), top: gaps.map(() => range[0] + 1.2 * pad),
    hatch: gaps.map((gap) => gap.hatch),
  };
  timeline.chart.describe(`${NAMES[k]} over the frames of ${clip.name}, from ${small(low, 4)} to `
    + `${small(high, 4)} ${UNITS[k]}, with a band of one sigma`);
  drawNow();
}

// A column with frames that have no answer, added to the columns before it if they are alike.
function markGap(gaps, hatch, left, step) {
  const last = gaps.at(-1);
  if (last && last.hatch === hatch && last.right >= left) last.right = left + step;
  else gaps.push({ hatch, left, right: left + step });
}

function drawNow() {
  if (!timeline.chart || !clip) return;
  const k = Number(byId("over-time").value), x = clip.frame[place];
  const value = answersOf(state.scheme).values[place * NAMES.length + k];
  const [from, to] = timeline.range;
  timeline.now.data = { x0: [x], y0: [from], x1: [x], y1: [to] };
  timeline.at.data = xyOf(Number.isNaN(value) ? [] : [[x, value]]);
}

/* Walking through it */

function goTo(row) {
  place = clamp(row, 0, clip.frame.length - 1);
  byId("frame").value = String(place);
  sayFrame();
  drawNow();
  const lfl = clip.lfl[place], fd = clip.fd[place];
  const missing = [Number.isNaN(lfl) && "focal length", Number.isNaN(fd) && "focus distance"]
    .filter(Boolean).join(" and ");
  const words = `Frame ${clip.frame[place]}: the lens did not tell its ${missing}.`;
  pinAt(lfl, fd, missing ? words : null);
}

function sayFrame() {
  const { status } = answersOf(state.scheme);
  const words = `${clip.frame[place]}, ${PARTS[status[place]].words}`;
  byId("frame-words").textContent = words;
  byId("frame").setAttribute("aria-valuetext", words);
}

function walk(by) { if (clip) goTo(place + by); }
