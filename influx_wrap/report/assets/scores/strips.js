// Videos: each has a small drawing of its own. A figure of the library costs a hundred times as
// much to make, which 386 videos at a time of scrolling cannot have.

const HEIGHT = 100, BAND = 6;

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
  const section = make("div", { class: "card strip", role: "group", tabindex: "0",
    "aria-label": video.name }, make("h3", {}, video.name));
  if (video.true) {
    holder.append(make("div", { class: "plot" }));
    section.append(make("div", { class: "words number" }, plural(video.frames, "frame")),
      holder, readout, legend);
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
  focusNext([...byId("strips").children].filter((section) => !section.hidden), step);
}

function goLinked() {
  const wanted = addressed();
  const strip = strips.find(({ video }) => video.name === wanted);
  if (!strip) return;
  if (strip.section.hidden) {
    byId("filter").value = "";
    arrangeStrips();
  }
  focusOn(strip.section);
}
