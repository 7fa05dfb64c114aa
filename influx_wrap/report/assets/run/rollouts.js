// The scatter of the rollouts in two parameters. All values are relative to the answer's, which
// they differ from in the last digits only.

// Points, fences and truth in the parameters "at", and what the axes have to show of them.
function rolloutPlane(cell, at) {
  const { apart, inside, fences, numbers, total } = cell.rollouts;
  const values = decoded(apart);
  const points = numbers.map((_, row) => at.map((k) => values[8 * row + k]));
  // Only fx, fy, cx and cy are fenced, and of less than four rollouts there are no quartiles.
  const fence = at.map((k) => (k < 4 && total > 3 ? fences[k] : null));
  const truth = cell.truth && at.map((k) => cell.truth[k] - cell.intrinsics[k]);
  const ranges = at.map((k, axis) => {
    const kept = points.filter((_, row) => inside[row]).map((point) => point[axis]);
    const shown = [0, ...kept, ...(fence[axis] ?? []), ...(truth ? [truth[axis]] : [])];
    const from = Math.min(...shown), to = Math.max(...shown), reach = .75 * (to - from);
    const near = points.map((point) => point[axis])
      .filter((value) => value > from - reach && value < to + reach);
    const low = Math.min(from, ...near), high = Math.max(to, ...near);
    // Rollouts that agree are one point: what differs by a hundredth of sigma does not matter.
    const margin = Math.max(.08 * (high - low), .01 * cell.sigma[k])
      || 1e-6 * Math.abs(cell.intrinsics[k]) || 1e-9;
    return [low - margin, high + margin];
  });
  // What is further out is drawn at the edge, lest it make a dot of all others.
  const drawn = points.map((point) => point.map((value, axis) => clamp(value, ...ranges[axis])));
  const beyond = sum(drawn.map((point, row) => `${point}` !== `${points[row]}`));
  return { drawn, beyond, fence, truth, ranges };
}

function axisLabel(cell, k) {
  const value = fixed(cell.intrinsics[k], decimals(cell.sigma[k]));
  return `${data.names[k]} \u2212 ${value.replace(/^\u2212.*/, "($&)")}${UNITS[k] && ` ${UNITS[k]}`}`;
}

function drawRollouts(element, chosenNames, tell) {
  const chart = new Chart(element, { label: "Rollouts", height: 300, x: { range: [-1, 1] },
    y: { range: [-1, 1] } });
  const add = (kind, properties, look) => chart.add(kind,
    { ...fields("x", "y"), source: chart.empty("x", "y"), ...properties }, look).data_source;
  const box = add("line", { line_dash: "dashed", line_width: 1.5 }, { line: "ink" });
  const inside = add("scatter", { size: 7, marker: "circle", fill_alpha: .5 },
    { line: "mark", fill: "mark" });
  const outside = add("scatter", { size: 9, marker: "x", line_width: 2 }, { line: "warn" });
  const truth = add("scatter", { size: 16, marker: "cross", line_width: 3 }, { line: "ink" });
  const chosen = add("scatter", { size: 16, marker: "diamond", line_width: 2.5, fill_alpha: 0 },
    { line: "ink", fill: "ink" });
  return [chart, (cell) => {
    const at = chosenNames().map((name) => data.names.indexOf(name));
    const plane = rolloutPlane(cell, at), within = cell.rollouts.inside;
    at.forEach((k, axis) => chart.axis("xy"[axis],
      { range: plane.ranges[axis], label: axisLabel(cell, k) }));
    const those = (wanted) => xyOf(plane.drawn
      .filter((_, row) => Boolean(within[row]) === wanted));
    inside.data = those(true);
    outside.data = those(false);
    chosen.data = xyOf(cell.selected === "initialization" ? [] : [[0, 0]]);
    truth.data = xyOf(plane.truth ? [plane.truth] : []);
    const [[left, right], [bottom, top]] = plane.fence.map((f, axis) => f ?? plane.ranges[axis]);
    box.data = xyOf(plane.fence.some(Boolean) ? [[left, bottom], [right, bottom], [right, top],
      [left, top], [left, bottom]] : []);
    chart.describe(`${cell.rollouts.total} rollouts by ${chosenNames().join(" and ")}: `
      + `${sum(within)} inside the fences`);
    tell(cell, plane.beyond);
  }];
}

function rolloutFigure(section, names, tell) {
  const selects = names.map((name, k) => {
    const select = make("select", { id: `${section.id}-${"xy"[k]}` },
      ...data.names.map((other) => new Option(other)));
    select.value = name;
    section.querySelector(".tools").append(make("label", { for: select.id },
      k ? "Upwards" : "To the right"), select);
    return select;
  });
  const chosenNames = () => selects.map((select) => select.value);
  const drawing = addDrawing(section, (element) => drawRollouts(element, chosenNames, tell),
    ({ rollouts }) => rollouts && rollouts.numbers.length, (cell) => tell(cell, 0));
  for (const select of selects) select.addEventListener("change", () => redraw(drawing));
}

function furtherOut(n) {
  return n ? ` ${plural(n, "rollout")} further out, drawn at the edge.` : "";
}

function rolloutWords(cell, beyond) {
  const { total, inside, numbers } = cell.rollouts;
  const section = byId("rollouts1");
  section.querySelector(".chosen").hidden = cell.selected === "initialization";
  section.querySelector(".truth").hidden = !cell.truth;
  const lost = total - numbers.length;
  const parts = total === 1
    ? ["One order of the views was tried: there was nothing to choose from."]
    : [strong(`${sum(inside)} of ${total} inside the fences`), " of fx, fy, cx and cy, 1.5 times "
      + "the interquartile range beyond the quartiles; the one closest to the medians of these is "
      + (cell.selected === "all-views" ? "the paper's choice." : "chosen.")];
  if (total > 1 && cell.views.length === 1) parts.push(" With one view all orders are the same.");
  if (lost) parts.push(` ${plural(lost, "rollout")} did not converge.`);
  parts.push(furtherOut(beyond));
  if (cell.selected === "initialization") {
    parts.push(" None was used: the answer is the initialisation.");
  } else if (cell.selected === "all-views") {
    parts.push(" The answer is one adjustment of all views that they trust.");
  }
  caption(section, ...parts);
}

function buildRollouts() {
  rolloutFigure(byId("rollouts1"), ["fx", "fy"], rolloutWords);
  rolloutFigure(byId("rollouts2"), ["cx", "cy"],
    (_, beyond) => caption(byId("rollouts2"), furtherOut(beyond)));
}
