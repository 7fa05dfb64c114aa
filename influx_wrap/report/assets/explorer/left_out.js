// The lens explorer's leave-one-out errors: a table of all schemes and a map of each.

const leftOutSources = [];

// Experiments that contradict the others, the worst first: {name, row, k, z, isAside}, with k the
// intrinsic that is most wrong.
function oddExperiments() {
  if (!smooth) return [];
  const { z, odd, setAside } = smooth.leftOut;
  return experiments.map(({ name, row }) => {
    const sizes = z[row].map(Math.abs), k = sizes.indexOf(Math.max(...sizes));
    return { name, row, k, z: z[row][k], isAside: setAside[row] };
  }).filter((one) => Math.abs(one.z) > odd || one.isAside)
    .sort((a, b) => Math.abs(b.z) - Math.abs(a.z));
}

const withDigits = (value, k) => value.toFixed(DIGITS[k]);

// What an experiment that contradicts the others should have been.
function oddWords({ name, row, k, z, isAside }) {
  const { expected, sigma } = smooth.leftOut, unit = UNITS[k] && ` ${UNITS[k]}`;
  return `${name}: ${NAMES[k]} is ${withDigits(data.values[row][k], k)}${unit}, the others say `
    + `${withDigits(expected[row][k], k)} \u00b1 ${small(sigma[row][k])}${unit}, z = ${z.toFixed(1)}`
    + `${isAside ? "; set aside" : ""}.`;
}

function makeOdd() {
  byId("odd").hidden = !smooth;
  if (!smooth) return;
  const odd = oddExperiments(), { z } = smooth.leftOut, n = experiments.length;
  const worst = Math.max(...z.map((row) => Math.max(...row.map(Math.abs))));
  byId("odd-words").textContent = odd.length ? `${plural(odd.length, "experiment")} of ${n} `
    + `${odd.length === 1 ? "contradicts" : "contradict"} what the others say about them:`
    : `No experiment contradicts the others: the largest of all z-scores is ${worst.toFixed(1)}.`;
  byId("odd-list").replaceChildren(...odd.map((one) => {
    const { lfl, fd } = experiments[one.row];
    const button = make("button", { type: "button" }, "Show it");
    button.setAttribute("aria-label", `Show ${one.name} on the plane`);
    button.addEventListener("click", () => pinAt(lfl, fd));
    return make("li", { "data-name": one.name, "data-z": String(one.z) }, oddWords(one), " ",
      button);
  }));
}

function makeProposals() {
  byId("proposals").hidden = !data.proposals.length;
  byId("proposals-list").replaceChildren(...data.proposals.map(({ lfl, fd, target, gain }, k) => {
    const setting = `${short(lfl)} mm, ${metres(fd)}`;
    const button = make("button", { type: "button" }, setting);
    button.addEventListener("click", () => pinAt(lfl, fd));
    const what = target === "drone" ? target : `board ${target}`;
    return make("li", {}, button, ` ${what}: the largest sigma at the picture's corner gets `
      + `${small(gain)} px smaller`, make("span", { class: "quiet" }, ` (+${k + 1} on the plane)`));
  }));
}

function makeLeftOut() {
  makeOdd();
  makeProposals();
  byId("left-out").hidden = data.favoured === null && !smooth;
  const told = smooth ? ` The smooth lens predicts all ${data.names.length}.` : "";
  byId("left-out-words").textContent = (data.favoured === null
    ? `No experiment of this table is enclosed by others: between neighbours, nothing to judge.`
    : `Others enclose ${lookupOf(data.favoured).leftOut.judged} of ${data.names.length} `
      + "experiments, and predict them. Of the schemes between neighbours, this lens's own data "
      + `favour ${data.favoured}.`) + told;
  if (byId("left-out").hidden) return;
  const heads = NAMES.map((name, k) => header("col", name + (k < 4 ? " %" : "")));
  const rows = lookups.flatMap(({ name, leftOut: judgement }) => [
    ["median", judgement.median], ["largest", judgement.largest], ["in 1 sigma", judgement.within],
    ...(judgement.z ? [["largest |z|", NAMES.map((_, k) => Math.max(
      ...judgement.z.map((row) => Math.abs(row[k]))))]] : []),
  ].map(([kind, values], line, all) => make("tr", {},
    ...(line ? [] : [make("th", { scope: "rowgroup", rowspan: String(all.length) }, name)]),
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
  addEventListener("beforeprint", drawLeftOutList);
  whenSeen(byId("left-out-maps"), makeMaps);
}

function cellText(kind, value, k) {
  if (value === null) return NONE;
  if (kind === "in 1 sigma") return `${(100 * value).toFixed(0)} %`;
  if (kind === "largest |z|") return value.toFixed(1);
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
  const errors = lookups.map((lookup) => errorsOf(lookup, { kind: "left", k }));
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
        : `${small(error, 3)}${unit}, ${predictedBy(number, row, k)}`)),
    };
  });
  drawBar(byId("left-out-bar"), scale, "error", unit.trim());
  drawLeftOutList();
}

function predictedBy(scheme, row, k) {
  if (lookups[scheme].isSmooth) return `z = ${lookups[scheme].leftOut.z[row][k].toFixed(1)}`;
  return lookups[scheme].leftOut.isBilinear[row] ? "from four of the grid" : "from a triangle";
}

function drawLeftOutList() {
  if (!byId("left-out-list").open) return;
  const k = Number(byId("left-out-of").value), unit = k < 4 ? ", %" : "";
  const rows = experiments.map(({ name, row, lfl, fd, target }) => make("tr", {},
    header("row", name), make("td", {}, target), make("td", {}, short(lfl)),
    make("td", {}, metres(fd)), ...lookups.map((lookup, scheme) => {
      const error = lookup.leftOut.errors[row]?.[k] ?? null;
      return error === null ? make("td", {}, NONE)
        : make("td", {}, small(error, 3), make("small", {}, predictedBy(scheme, row, k)));
    })));
  const heads = ["experiment", "target", "LFL (mm)", "FD", ...lookups.map(({ name }) => name)];
  const table = byId("left-out-list").querySelector("table");
  fill(table, heads.map((head) => header("col", head)), rows);
  table.prepend(make("caption", { class: "quiet" },
    `Leave-one-out errors of ${NAMES[k]}${unit}`));
}
