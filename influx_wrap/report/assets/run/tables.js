// One experiment in words and tables.

function decimals(sigma) {
  return sigma > 0 ? clamp(1 - Math.floor(Math.log10(sigma)), 0, 9) : 6;
}

function buildIntrinsics(cell) {
  const { truth, bound } = cell;
  const head = ["", "value", "sigma", ...(truth ? ["truth", "error"] : []),
    ...(bound ? ["bound", "error / bound"] : [])];
  fill(byId("intrinsics"), head.map((text) => header("col", text)), data.names.map((name, k) => {
    const value = cell.intrinsics[k], digits = decimals(cell.sigma[k]);
    const row = make("tr", {}, header("row", withUnit(name, k)),
      number(value, fixed(value, digits), "td"),
      number(cell.sigma[k], fixed(cell.sigma[k], digits), "td"));
    if (truth) {
      const error = value - truth[k];
      row.append(number(truth[k], fixed(truth[k], digits), "td"),
        number(error, signed(error, digits), "td"));
      if (bound) {
        const over = error / bound[k];
        row.append(number(bound[k], fixed(bound[k], digits), "td"),
          number(over, signed(over, 2), "td"));
      }
    }
    return row;
  }));
}

function answerWords(cell) {
  if (cell.selected === "batch") return "The answer is the best fit to all views at once.";
  if (cell.selected === "all-views") {
    return "The answer is one adjustment of all views that the rollouts trust.";
  }
  if (cell.selected === "initialization") return "The answer is the initialisation.";
  const total = cell.rollouts.total;
  return total === 1 ? "The answer is the only rollout."
    : `The answer is rollout ${cell.selected} of ${total} (counted from 0).`;
}

function buildWords(cell) {
  const used = cell.views.filter((view) => view[1] < 0).length;
  const { stated, projection } = cell;
  const lines = [
    `The field of view is ${fieldOfViewWords(cell, 2)}, ${cell.fieldOfView[2] === null
      ? "and the corners are beyond the fold of the distortion"
      : `${cell.fieldOfView[2].toFixed(2)}\u00b0 over the diagonal`}.`,
    answerWords(cell),
    `${used} of ${plural(cell.views.length, "view")} used, with `
      + `${plural(stated.corners, "corner")}; residuals of ${short(stated.rms_px)} px RMS per `
      + `axis, the largest ${short(stated.max_px)} px.`,
    `Sigma of a projected point: ${short(projection.median)} px (median over the picture), `
      + `${short(projection.worst)} px at worst.`,
  ];
  if (cell.bow_m) {
    const bow = cell.bow_m.map((value) => (1e3 * value).toFixed(2)).join(", ");
    lines.push(`The board is bent by ${bow} mm (along x, along y, twist).`);
  }
  if (cell.offPaper) lines.push(sentence(`By the paper's rule it would be another one: ${cell.offPaper}`));
  byId("said").replaceChildren(...lines.map((text) => make("li", { class: "number" }, text)));
}

function buildStages(cell) {
  const table = byId("stages").querySelector("table");
  const rows = cell.stages.map(([name, values]) => (name === "focal_px"
    ? make("tr", {}, header("row", "focal length to begin with"),
      number(values, values.toFixed(2), "td"), number(values, values.toFixed(2), "td"),
      ...Array.from({ length: 6 }, () => make("td", {}, "")))
    : make("tr", {}, header("row", STAGES[name] ?? name),
      ...values.map((value, k) => number(value, fixed(value, decimals(cell.sigma[k])), "td")))));
  fill(table, [header("col", "stage"), ...data.names.map((name, k) => header("col",
    withUnit(name, k)))], rows);
  for (const first of table.querySelectorAll("th:first-child")) first.className = "left";
}

function buildViews(cell) {
  const section = byId("views");
  const used = cell.views.filter((view) => view[1] < 0);
  const reasons = cell.reasons.map(([reason, n]) => `${n} not used: ${reason}`);
  const removed = sum(used.map((view) => view[3]));
  caption(section, strong(`${used.length} of ${cell.views.length} used`),
    `${reasons.length ? `; ${reasons.join("; ")}` : ""}. ${plural(removed, "corner")} of the views `
    + `used ${removed === 1 ? "was" : "were"} left out as outlying.`);
  const alone = cell.views.length < 2;
  for (const part of section.querySelectorAll(".drawn, .legend")) part.hidden = alone;
  const head = ["view", "used", "corners used", "left out", "RMS (px)"]
    .map((text) => header("col", text));
  head[1].className = "left";
  fill(section.querySelector("table"), head,
    cell.views.map(([, reason, corners, left, rms, name]) => make("tr", {},
      header("row", name),
      make("td", { class: "left" }, reason < 0 ? "yes" : `no: ${cell.reasons[reason][0]}`),
      number(corners, `${corners}`, "td"), number(left, `${left}`, "td"),
      number(rms, rms === null ? "" : rms.toFixed(4), "td"))));
}

function buildPictures(cell) {
  byId("pictures").hidden = !cell.pictures.length;
  byId("pictures").querySelector(".shelf").replaceChildren(...cell.pictures.map(([path, jpeg]) => {
    const href = path.split("/").map(encodeURIComponent).join("/");
    const link = make("a", { href }, path);
    if (!jpeg) return link;
    return make("figure", {}, make("img", { src: jpeg, alt: "Contact sheet of the chosen frames" }),
      make("figcaption", {}, link));
  }));
}

function buildProvenance(cell) {
  const holder = byId("provenance").querySelector("div");
  const inputs = Object.entries(cell.inputs)
    .map(([name, hash]) => [name, hash === null ? "not there" : `SHA-256 ${hash}`]);
  holder.replaceChildren(...madeOf(data.made[cell.made], [["seed", cell.seed ?? null], ...inputs]));
}
