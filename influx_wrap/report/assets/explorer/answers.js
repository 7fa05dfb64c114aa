// The lens explorer's answers at the cursor, and what the camera sees there.

/* The answers of all schemes */

const cells = { values: [], spread: [], status: [], heads: [] };

function makeAnswers() {
  cells.heads = lookups.map(({ name }) => header("col", name));
  const rows = NAMES.map((name, k) => {
    const row = lookups.map((lookup) => {
      const value = make("span", { class: "value" }), sigma = make("small", { class: "sigma" });
      const cell = make("td", { "data-scheme": lookup.name, "data-name": name }, value, sigma);
      return { cell, value, sigma };
    });
    const spread = make("td", {});
    cells.values.push(row);
    cells.spread.push(spread);
    return make("tr", {}, header("row", name, make("small", {}, UNITS[k])),
      ...row.map(({ cell }) => cell), spread);
  });
  cells.status = lookups.map(({ name }) => make("td", { "data-status-of": name }));
  rows.push(make("tr", {}, header("row", "status"), ...cells.status, make("td", {})));
  fill(byId("answers"), [header("col", "intrinsic"), ...cells.heads, header("col", "differ by")],
    rows);
  byId("answers").prepend(
    make("caption", { class: "quiet" }, "Value, and \u00b1 one sigma below it"));
}

function put(element, text, value) {
  element.textContent = text;
  if (value === null) delete element.dataset.value; else element.dataset.value = String(value);
}

function drawAnswers(answers) {
  const sigmas = answers.map((answer, k) => sigmaOf(lookups[k], answer));
  NAMES.forEach((_, c) => {
    answers.forEach((answer, k) => {
      const { value, sigma } = cells.values[c][k], known = answer.intrinsics !== null;
      put(value, known ? answer.intrinsics[c].toFixed(DIGITS[c]) : NONE,
        known ? answer.intrinsics[c] : null);
      const deviation = known ? sigmas[k][c] : null, isTold = known && !Number.isNaN(deviation);
      put(sigma, isTold ? `\u00b1 ${small(deviation)}` : known ? "\u00b1 ?" : "",
        isTold ? deviation : null);
    });
    const found = answers.flatMap(({ intrinsics }) => (intrinsics ? [intrinsics[c]] : []));
    if (found.length > 1) {
      // Less than this is rounding.
      const least = 1e-10 * Math.max(...found.map(Math.abs));
      const apartBy = Math.max(...found) - Math.min(...found);
      const difference = apartBy > least ? apartBy : 0;
      const chosen = sigmas[lookups.findIndex(({ name }) => name === state.scheme)]?.[c];
      const inSigmas = chosen > 0 ? make("small", {}, `${small(difference / chosen)} \u03c3`) : "";
      cells.spread[c].replaceChildren(small(difference), inSigmas);
      cells.spread[c].dataset.value = String(difference);
    } else cells.spread[c].replaceChildren(NONE);
  });
  answers.forEach(({ status }, k) => {
    cells.status[k].textContent = wordOf[status].toLowerCase();
    cells.status[k].dataset.status = STATUS_NAMES[status];
  });
}

function markScheme() {
  lookups.forEach(({ name }, k) => {
    const is = name === state.scheme;
    cells.heads[k].classList.toggle("chosen", is);
    cells.heads[k].replaceChildren(name, ...(is ? [make("small", {}, "shown")] : []));
    for (const row of cells.values) row[k].cell.classList.toggle("chosen", is);
    cells.status[k].classList.toggle("chosen", is);
  });
}

function statusWords(lookup, answer) {
  const { lfl, fd, status } = answer, setting = `${short(lfl, 6)} mm, ${metres(fd, 6)}`;
  if (state.words) return state.words;
  if (lookup.isSmooth) return smoothWords(lookup, answer, setting);
  if (status === STATUS.LFL_OUTSIDE) {
    return `Outside: LFL ${short(lfl, 6)} mm is not in the table of ${data.lens}, which runs from `
      + `${short(leastLfl, 6)} to ${short(mostLfl, 6)} mm. Nobody can say.`;
  }
  if (status === STATUS.UNUSABLE) {
    return `No answer: ${setting} is no setting of a lens. Both must be positive, and the distance `
      + "more than four times the focal length.";
  }
  if (status === STATUS.EXTRAPOLATED) {
    const ends = rangeOfY(lookup, clamp(lfl, leastLfl, mostLfl)).map((y) => toFd(lookup, y));
    const [near, far] = [Math.min(...ends), Math.max(...ends)], isNear = fd < near;
    return `Extrapolated: at ${short(lfl, 6)} mm the table ${isNear ? "begins" : "ends"} at `
      + `${metres(isNear ? near : far)}. fx and fy are those of a thin lens at ${metres(fd)}, the `
      + `rest is as at ${metres(isNear ? near : far)}.`;
  }
  const exact = experiments.find((one) => one.lfl === lfl && one.fd === fd);
  if (exact) return `At experiment ${exact.name} (${exact.target}): ${setting}.`;
  const n = answer.vertices.length;
  const how = { 4: "bilinear, between four board experiments", 3: "in a triangle of experiments",
    2: "between two experiments", 1: "one experiment only" }[n];
  return `Interpolated at ${setting}: ${how}.`;
}

function smoothWords(lookup, { lfl, fd, status }, setting) {
  const [least, most] = lookup.lfl;
  if (status === STATUS.LFL_OUTSIDE) {
    return `Outside: LFL ${short(lfl, 6)} mm is not in the table of ${data.lens}, which runs from `
      + `${short(least, 6)} to ${short(most, 6)} mm. Nobody can say.`;
  }
  if (status === STATUS.UNUSABLE) {
    return `No answer: ${setting} is no setting of this lens. Its nearest experiment is at `
      + `${metres(lookup.nearest)}, and answers end at ${metres(
        lookup.leastShare * lookup.nearest)}.`;
  }
  const exact = experiments.find((one) => one.lfl === lfl && one.fd === fd);
  const odd = exact && oddExperiments().find(({ row }) => row === exact.row);
  if (odd) return `At experiment ${oddWords(odd)}`;
  if (exact) {
    const z = Math.max(...lookup.leftOut.z[exact.row].map(Math.abs));
    return `At experiment ${exact.name} (${exact.target}): ${setting}. It is as the others say: `
      + `its largest z-score is ${z.toFixed(1)}.`;
  }
  if (status === STATUS.INTERPOLATED) return `Interpolated at ${setting}: by the whole lens.`;
  return `Extrapolated: no experiments are around ${setting}. Sigma says what that costs.`;
}

// What the paper's scheme would have said at the cursor, beside the one that is shown.
function drawPaper(answers) {
  const words = byId("paper-words"), k = lookups.findIndex(({ name }) => name === state.scheme);
  const paper = answers[lookups.findIndex(({ name }) => name === "paper")].intrinsics;
  const own = answers[k].intrinsics;
  delete words.dataset.value;
  words.textContent = "";
  if (state.scheme === "paper" || !own) return;
  if (!paper) {
    words.textContent = "The paper's scheme has no answer there.";
    return;
  }
  const percent = 100 * (paper[0] / own[0] - 1), [sigma] = sigmaOf(lookups[k], answers[k]);
  const sigmas = sigma > 0 ? `, ${small(Math.abs(paper[0] - own[0]) / sigma)} \u03c3` : "";
  words.textContent = `The paper's scheme would have said fx = ${paper[0].toFixed(2)} px: `
    + `${small(Math.abs(percent), 2)} % ${percent < 0 ? "less" : "more"}${sigmas}.`;
  words.dataset.value = String(percent);
}

function drawCorner(answer) {
  const sigma = cornerSigma(lookupOf(state.scheme), answer), words = byId("corner-words");
  put(words, sigma === null ? "" : `At the picture's corner that is \u00b1 ${small(sigma)} px, by `
    + "focal length and radial distortion.", sigma);
}

function drawWeights(answer) {
  const items = answer.vertices.map((row, k) => {
    const { name, lfl, fd, target } = experiments[row];
    const button = make("button", { type: "button",
      title: `${target}, ${short(lfl)} mm, ${metres(fd)}: put the cursor there` }, `${name} `,
    make("span", { class: "quiet" }, target));
    button.addEventListener("click", () => {
      pinAt(lfl, fd);
      // The list is about to change under whoever is in it.
      byId("plane-keys").focus({ preventScroll: true });
    });
    // Rounding may leave a little less than nothing.
    const text = answer.weights[k].toFixed(3).replace("-0.000", "0.000");
    const weight = make("span", { class: "number", "data-vertex": name,
      "data-value": String(answer.weights[k]) }, text);
    const share = make("span", { class: "share",
      style: `width: ${100 * clamp(answer.weights[k], 0, 1)}%` });
    return make("li", {}, button, weight, make("span", {}, share));
  });
  const list = byId("weights"), buttons = () => [...list.querySelectorAll("button")];
  const focused = buttons().indexOf(document.activeElement);
  const nobody = lookupOf(state.scheme).isSmooth && answer.intrinsics ? "all that take part: "
    + `${smooth.leftOut.setAside.filter((is) => !is).length} of ${data.names.length}` : "nobody";
  list.replaceChildren(...(items.length ? items : [make("li", { class: "quiet all" }, nobody)]));
  if (focused < 0) return;
  // Keys go on from where they were.
  (buttons()[focused] ?? buttons().at(-1) ?? byId("plane-keys")).focus({ preventScroll: true });
}

/* What the camera sees */

const picture = {};
const [width, height] = data.imageSize;

function makePicture() {
  const pad = 0.06 * width;
  const chart = new Chart(byId("grid"), {
    label: "Distortion of a grid", aspect: (width + 2 * pad) / (height + 2 * pad),
    x: { label: "u (px)", range: [-pad, width + pad] },
    y: { label: "v (px)", range: [-pad, height + pad], flipped: true },
  });
  picture.ideal = chart.empty("xs", "ys");
  picture.seen = chart.empty("xs", "ys");
  const lines = fields("xs", "ys");
  chart.add("multi_line", { ...lines, source: picture.ideal, ...dashes(2, 3) }, { line: "quiet" });
  chart.add("multi_line", { ...lines, source: picture.seen, line_width: 1.5 }, { line: "mark" });
  const [l, r, t, b] = [-0.5, width - 0.5, -0.5, height - 0.5];
  chart.add("multi_line", { ...lines, line_width: 2,
    source: chart.source({ xs: [[l, r, r, l, l]], ys: [[t, t, b, b, t]] }) }, { line: "ink" });
  picture.chart = chart;
  drawPicture();
}

// Lines of a grid over the picture, as places [u, v].
const gridLines = (() => {
  const lines = [], across = 12, down = Math.max(Math.round(12 * height / width), 2);
  const along = Array.from({ length: 25 }, (_, k) => k / 24);
  for (let k = 0; k <= across; k += 1) {
    lines.push(along.map((share) => [-0.5 + width * k / across, -0.5 + height * share]));
  }
  for (let k = 0; k <= down; k += 1) {
    lines.push(along.map((share) => [-0.5 + width * share, -0.5 + height * k / down]));
  }
  return lines;
})();

function drawPicture() {
  const { intrinsics: theta } = query(lookupOf(state.scheme), state.lfl, state.fd);
  drawSeen(theta);
  if (!picture.chart) return;
  picture.ideal.data = xysOf(theta ? gridLines : []);
  if (!theta) { picture.seen.data = xysOf([]); return; }
  const times = Number(byId("enlarged").value), [fx, fy, cx, cy] = theta;
  picture.seen.data = xysOf(gridLines.map((line) => line.map(([u, v]) => {
    const seen = project(theta, (u - cx) / fx, (v - cy) / fy);
    return seen ? [u + times * (seen[0] - u), v + times * (seen[1] - v)] : [NaN, NaN];
  })));
}

function drawSeen(theta) {
  const list = byId("seen"), entries = [];
  const add = (id, name, text, value) => {
    const shownAs = make("dd", { class: "number", id });
    put(shownAs, text, value);
    entries.push(make("dt", {}, name), shownAs);
  };
  let folds = false;
  if (theta) {
    const view = fieldOfView(theta, data.imageSize);
    const moved = displacement(theta, data.imageSize, 24);
    ({ folds } = moved);
    for (const [name, angle] of Object.entries(view)) {
      add(`fov-${name}`, `${name} field of view`,
        angle === null ? "no ray reaches the rim" : `${angle.toFixed(3)}\u00b0`, angle);
    }
    const cfl = [0, 1].map((k) => 1e-3 * data.pixelUm[k] * theta[k]);
    add("cfl", "camera focal length CFL",
      `${cfl[0].toFixed(3)} mm (fx), ${cfl[1].toFixed(3)} mm (fy)`, (cfl[0] + cfl[1]) / 2);
    add("displacement", "largest displacement", `${small(moved.largest, 3)} px`, moved.largest);
  }
  list.replaceChildren(...entries);
  byId("fold").hidden = !folds;
  byId("fold").textContent = "The distortion polynomial folds inside the picture: some of its "
    + "pixels have no direction. Do not use these intrinsics there.";
}
