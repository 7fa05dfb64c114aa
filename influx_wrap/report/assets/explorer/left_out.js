// The lens explorer's leave-one-out errors: a table of all schemes and a map of each.

const leftOutSources = [];

function makeLeftOut() {
  if (data.favoured === null) {
    byId("left-out").hidden = true;
    byId("left-out-words").textContent = "No experiment of this table is enclosed by others: "
      + "nothing to judge.";
    return;
  }
  const better = data.favoured === data.default ? ", the default, as published."
    : `; the default is ${data.default}, as published.`;
  const { judged } = lookupOf(data.favoured).leftOut;
  byId("left-out-words").textContent = `Others enclose ${judged} of ${data.names.length} `
    + `experiments, and predict them. This lens's own data favour ${data.favoured}${better}`;
  const heads = NAMES.map((name, k) => header("col", name + (k < 4 ? " %" : "")));
  const rows = lookups.flatMap(({ name, leftOut: judgement }) => [
    ["median", judgement.median], ["largest", judgement.largest], ["in 1 sigma", judgement.within],
  ].map(([kind, values], line) => make("tr", {},
    ...(line ? [] : [make("th", { scope: "rowgroup", rowspan: "3" }, name)]),
    header("row", kind),
    ...NAMES.map((_, k) => {
      const cell = make("td", { "data-scheme": name, "data-kind": kind });
      // A scheme may enclose no experiment where others do.
      const value = values?.[k] ?? null;
      put(cell, cellText(kind, value, k), value);
      return cell;
    }))));
  fill(byId("left-out-table"), [header("col", "scheme"), header("col", "error"), ...heads], rows);
  byId("left-out-of").append(...NAMES.map((name, k) => new Option(name, k)));
  byId("left-out-of").addEventListener("change", drawLeftOut);
  byId("left-out-list").addEventListener("toggle", drawLeftOutList);
  whenSeen(byId("left-out-maps"), makeMaps);
}

function cellText(kind, value, k) {
  if (value === null) return NONE;
  if (kind === "in 1 sigma") return `${(100 * value).toFixed(0)} %`;
  return k < 4 ? value.toFixed(3) : small(value);
}

function makeMaps() {
  const ticks = planeTicks(axes.inverse), wide = 0.05 * (vRange[1] - vRange[0]);
  const heights = [vRange[0] - wide, vRange[1] + wide];
  for (const { name } of lookups) {
    const holder = make("div", {});
    byId("left-out-maps").append(holder);
    const chart = new Chart(holder, {
      title: name, label: `Leave-one-out errors of scheme ${name}`, height: 230,
      x: { label: "FD", range: axes.inverse.range, ticks: apart(ticks.x, axes.inverse.range, 5) },
      y: { label: "LFL (mm)", range: heights, ticks: apart(ticks.y, heights, 9) },
      hover: [["", "@name"], ["error", "@words"]],
    });
    const source = chart.empty("x", "y");
    chart.add("scatter", { ...fields("x", "y", "marker", "size"), fill_color: { field: "fill" },
      source }, { line: "ink" });
    leftOutSources.push(source);
  }
  drawLeftOut();
}

function drawLeftOut() {
  const k = Number(byId("left-out-of").value), unit = k < 4 ? " %" : "";
  const errors = lookups.map((lookup) => errorsOf(lookup, k));
  const scale = colourScale(errors.flat(), true);
  leftOutSources.forEach((source, number) => {
    const own = errors[number];
    source.data = {
      x: data.fd.map((fd) => axes.inverse.u(fd)), y: data.lfl.map(Math.log), name: data.names,
      marker: own.map((error, row) => (Number.isNaN(error) ? "x" : data.isDrone[row] ? "triangle"
        : "square")),
      fill: own.map((error) => (scale ? errorColour(scale, error) : null)),
      size: own.map((error) => (Number.isNaN(error) ? 5 : 11)),
      words: own.map((error, row) => (Number.isNaN(error) ? "not enclosed by others"
        : `${small(error, 3)}${unit}, ${predictedBy(number, row)}`)),
    };
  });
  drawBar(byId("left-out-bar"), scale, "error", unit.trim());
  drawLeftOutList();
}

function predictedBy(scheme, row) {
  return lookups[scheme].leftOut.isBilinear[row] ? "from four of the grid" : "from a triangle";
}

function drawLeftOutList() {
  if (!byId("left-out-list").open) return;
  const k = Number(byId("left-out-of").value), unit = k < 4 ? ", %" : "";
  const rows = experiments.map(({ name, row, lfl, fd, target }) => make("tr", {},
    header("row", name), make("td", {}, target), make("td", {}, short(lfl)),
    make("td", {}, short(fd)), ...lookups.map((lookup, scheme) => {
      const error = lookup.leftOut.errors[row][k];
      return error === null ? make("td", {}, NONE)
        : make("td", {}, small(error, 3), make("small", {}, predictedBy(scheme, row)));
    })));
  const heads = ["experiment", "target", "LFL (mm)", "FD (m)", ...lookups.map(({ name }) => name)];
  const table = byId("left-out-list").querySelector("table");
  fill(table, heads.map((head) => header("col", head)), rows);
  table.prepend(make("caption", { class: "quiet" },
    `Leave-one-out errors of ${NAMES[k]}${unit}`));
}
