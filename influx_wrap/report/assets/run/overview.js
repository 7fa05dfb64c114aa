// All experiments: whether the lens can be used, what to do next, the grid, what is not good, and
// all intrinsics.

const VERDICT = "verdict";
const MANY_COLUMNS = 9, FEW_WITH_CARE = 5, FEW_STEPS = 3, FEW_LINKS = 6;
const WORST = ["suspect", "do not use", "failed"];
const SHORT = { "usable with care": "care" };
const QUANTITIES = [
  { key: "error", label: "|error of fx|", unit: " %" },
  { key: "overBound", label: "|error of fx| / bound", unit: "" },
  { key: "sigma", label: "sigma of fx", unit: " %" },
  { key: "projection", label: "projection uncertainty, median", unit: " px" },
  { key: "rms", label: "RMS of the residuals", unit: " px" },
  { key: "views", label: "views used", unit: "", counts: true },
  { key: "fx", label: "fx", unit: " px", neutral: true },
  { key: "view", label: "horizontal field of view", unit: "\u00b0", neutral: true },
].filter(({ key }) => data.cells.some((cell) => cell.ok && cell.values[key] !== null));

// Text that can be read on a colour: whichever of black and white is further from it.
function inkOn(hex) {
  const [r, g, b] = rgbOf(hex).map((c) => c / 255)
    .map((c) => (c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4));
  return .2126 * r + .7152 * g + .0722 * b > .179 ? "#000000" : "#ffffff";
}

function scaleOf(quantity) {
  const values = data.cells.filter((cell) => cell.ok).map((cell) => cell.values[quantity.key])
    .filter((value) => value !== null);
  const bend = quantity.counts ? (value) => value : (value) => Math.log(Math.max(value, 1e-12));
  const low = Math.min(...values), high = Math.max(...values);
  const colours = ramp(quantity.counts || quantity.neutral ? "value" : "error");
  const colour = (value) => {
    const share = high > low ? (bend(value) - bend(low)) / (bend(high) - bend(low)) : 0;
    return shade(colours, share);
  };
  return { low, high, colours, colour };
}

function worded(value, { counts, neutral }) {
  return counts ? `${value}` : short(value, neutral ? 4 : 2);
}

function titleOf({ label, unit }) {
  return unit ? `${label}${unit.startsWith(" ") ? "," : ", in"}${unit.padStart(2)}` : label;
}

// "usable with care" as a class of the style sheet: "is-usable-with-care".
const classOf = (verdict) => `is-${verdict.replaceAll(" ", "-")}`;

function badge(verdict, text = verdict) {
  return make("span", { class: `badge ${classOf(verdict)}` }, text);
}

function cellLink(cell) {
  return make("a", { class: `cell ${classOf(cell.verdict)}`, href: addressOf(cell.name),
    title: cell.name, "data-cell": cell.name }, make("strong", {}), make("span", { class: "number" }),
  make("small", {}));
}

// The word for a verdict that is not simply good.
function wordOf({ verdict }) { return verdict === "good" ? "" : SHORT[verdict] ?? verdict; }

// fx, its sigma and the horizontal field of view, in units.
function writeAnswer(link, cell, said) {
  const [word, value, small] = link.children;
  word.textContent = wordOf(cell);
  if (!cell.ok) {
    delete value.dataset.value;
    value.replaceChildren(said);
    small.textContent = cell.target ?? "";
    return;
  }
  const [across] = cell.fieldOfView;
  value.dataset.value = cell.intrinsics[0];
  value.replaceChildren(said, make("span", { class: "said" }, "fx "),
    `${significant(cell.intrinsics[0], 5, 1e-5)} px`);
  small.replaceChildren(make("span", {}, `\u00b1${short(cell.sigma[0], 2)}\u00a0px`), " ",
    make("span", {}, across === null ? "" : `${across.toFixed(1)}\u00b0`));
}

function paintCells() {
  const quantity = QUANTITIES.find(({ key }) => key === byId("quantity").value);
  const scale = quantity && scaleOf(quantity);
  for (const link of document.querySelectorAll(".cell")) {
    const cell = cells.get(link.dataset.cell);
    const said = make("span", { class: "said" }, `${cell.name}, ${setting(cell)}, `);
    const [word, value, small] = link.children;
    const known = cell.ok && quantity && cell.values[quantity.key] !== null;
    link.classList.toggle("by-verdict", !known);
    const colour = known ? scale.colour(cell.values[quantity.key]) : null;
    link.style.background = colour ?? "";
    link.style.color = colour ? inkOn(colour) : "";
    if (!quantity) {
      writeAnswer(link, cell, said);
      continue;
    }
    small.textContent = cell.target ?? "";
    word.textContent = "";
    if (!known) {
      delete value.dataset.value;
      value.replaceChildren(said, cell.ok ? NONE : cell.verdict);
      continue;
    }
    value.dataset.value = cell.values[quantity.key];
    said.append(`${quantity.label} `);
    value.replaceChildren(said, worded(cell.values[quantity.key], quantity),
      make("span", { class: "said" }, `${quantity.unit}, `));
  }
  if (!quantity) {
    byId("scale").replaceChildren("fx in px, \u00b1 one sigma in px, horizontal field of view in "
      + "degrees; the colour is the verdict");
    return;
  }
  const bar = make("span", { class: "bar", "aria-hidden": "true" });
  const stops = [0, 64, 128, 191, 255].map((k) => scale.colours[k]);
  bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  const ends = [scale.low, scale.high].map((value) => worded(value, quantity));
  byId("scale").replaceChildren(ends[0], make("span", { class: "said" }, " to "), bar,
    `${ends[1]}${quantity.unit}`, make("span", { class: "on-paper" }, ` ${quantity.label}`));
}

// A grid of places [column, row]; more than one experiment may have the same.
function buildPlane(placed) {
  const at = new Map();
  for (const cell of placed) {
    at.set(cell.place.join(), [...at.get(cell.place.join()) ?? [], cell]);
  }
  const rows = data.fd.map(([fd, name], row) => make("tr", {},
    header("row", fd === "inf" ? metres(fd) : `${metres(fd)} m`, make("small", {}, name)),
    ...data.lfl.map((_, column) => {
      const here = at.get(`${column},${row}`);
      return make("td", {}, ...here ? here.map(cellLink) : [make("span", { class: "nothing" }, NONE)]);
    })));
  fill(byId("plane"), [header("col", "FD", make("span", { class: "said" }, " and LFL")),
    ...data.lfl.map(([lfl, name]) => header("col", `${Number(lfl.toFixed(2))} mm`,
      make("small", {}, name)))], rows);
  byId("plane").classList.toggle("many", data.lfl.length > MANY_COLUMNS);
  byId("plane").style.setProperty("--columns", data.lfl.length);
  byId("plane").prepend(make("caption", { class: "said" },
    "Experiments by focus distance and lens focal length"));
  moveByArrows([...byId("plane").querySelectorAll(".cell")], at);
}

// One stop for Tab; the arrows go from there. Second experiments of a place are stops of their own.
function moveByArrows(links, at) {
  const isFirst = (link) => {
    const cell = cells.get(link.dataset.cell);
    return at.get(cell.place.join())[0] === cell;
  };
  const firsts = links.filter(isFirst);
  firsts.forEach((link, k) => { link.tabIndex = k ? -1 : 0; });
  byId("plane").addEventListener("focusin", ({ target: link }) => {
    if (!firsts.includes(link)) return;
    for (const other of firsts) other.tabIndex = other === link ? 0 : -1;
  });
  byId("plane").addEventListener("keydown", (event) => {
    const step = arrowOf(event), cell = cells.get(event.target.dataset.cell);
    if (!step || !cell) return;
    event.preventDefault();
    let [column, row] = cell.place;
    while (column >= 0 && row >= 0 && column < data.lfl.length && row < data.fd.length) {
      column += step[0];
      row += step[1];
      const next = at.get(`${column},${row}`)?.[0];
      if (next) {
        links.find((link) => link.dataset.cell === next.name).focus();
        return;
      }
    }
  });
}

function withSigma(cell, k) {
  const digits = UNITS[k] ? Math.min(decimals(cell.sigma[k]), 2) : decimals(cell.sigma[k]);
  const shown = number(cell.intrinsics[k], fixed(cell.intrinsics[k], digits), "td");
  shown.append(make("small", {}, `\u00b1 ${fixed(cell.sigma[k], digits)}`));
  return shown;
}

function buildList() {
  const head = ["experiment", "verdict", "field of view", ...data.names.map(withUnit), "RMS (px)",
    "views"].map((text) => header("col", text));
  for (const k of [0, 1]) head[k].className = "left";
  fill(byId("list"), head, data.cells.map((cell) => make("tr", {},
    make("th", { scope: "row", class: "left" },
      make("a", { href: addressOf(cell.name) }, cell.name),
      make("small", {}, `${setting(cell)}, ${target(cell)}`)),
    make("td", { class: "left" }, badge(cell.verdict, SHORT[cell.verdict] ?? cell.verdict)),
    ...cell.ok ? [make("td", {}, fieldOfViewWords(cell, 1).replace(" ", "\u00a0")),
      ...data.names.map((_, k) => withSigma(cell, k)),
      number(cell.values.rms, short(cell.values.rms), "td"),
      number(cell.values.views, `${cell.values.views}`, "td")]
      : Array.from({ length: data.names.length + 3 }, () => make("td", {}, "")))));
}

function listed(cell, ...words) {
  return make("li", { class: `card notice ${classOf(cell.verdict)}` },
    make("a", { href: addressOf(cell.name) }, cell.name), " ",
    make("span", { class: "where" }, `${setting(cell)}, ${target(cell)}`), " ",
    badge(cell.verdict), ...words);
}

function verdictWords(cell) {
  const words = cell.suspicions.map((text) => make("p", {}, make("strong", {}, "Check what was typed: "),
    sentence(text)));
  if (cell.because.length) words.push(make("p", {}, sentence(`Because ${cell.because.join("; ")}`)));
  if (cell.filmNext.length) {
    words.push(make("p", {}, make("strong", {}, "Film next: "), sentence(cell.filmNext.join("; "))));
  }
  for (const text of cell.warnings ?? []) {
    words.push(make("p", {}, make("strong", {}, "Warning: "), sentence(text)));
  }
  return words;
}

function failureWords(cell) {
  return [make("p", {}, make("strong", {}, `${cell.stage}: `), sentence(cell.reason)),
    make("p", {}, make("strong", {}, "Try: "), cell.advice)];
}

function flat(values, prefix = "") {
  return Object.entries(values).flatMap(([key, value]) => (
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? flat(value, `${prefix}${key}.`) : [[`${prefix}${key}`, value]]));
}

function definitions(pairs) {
  return make("dl", {}, ...pairs.flatMap(([key, value]) => [make("dt", {}, key),
    make("dd", {}, value === null ? NONE : `${value}`)]));
}

function madeOf(made, more = []) {
  const { recipe, ...rest } = made;
  const parts = [definitions([...flat(rest), ...more])];
  if (recipe) {
    parts.push(make("details", {}, make("summary", {}, `recipe ${recipe.name}, all choices`),
      definitions(flat(recipe))));
  }
  return parts;
}

function recipeWords() {
  const counts = new Map();
  for (const { made } of data.cells) {
    const name = data.made[made].recipe?.name;
    if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (counts.size === 1) return `Recipe ${[...counts.keys()][0]}.`;
  const listed = [...counts].map(([name, n]) => `${name} (${n})`).join(", ");
  return listed && `Recipes ${listed}.`;
}

function buildNotGood() {
  const bad = data.cells.filter(({ verdict }) => WORST.includes(verdict));
  bad.sort((one, other) => WORST.indexOf(one.verdict) - WORST.indexOf(other.verdict));
  byId("bad").append(...bad.map((cell) => listed(cell,
    ...cell.ok ? [] : failureWords(cell), ...verdictWords(cell))));
  const care = data.cells.filter(({ verdict, suspicions, warnings }) => !WORST.includes(verdict)
    && (verdict === "usable with care" || suspicions.length || warnings?.length));
  byId("care").hidden = !care.length;
  byId("care").open = care.length <= FEW_WITH_CARE;
  byId("care").querySelector("summary").textContent = `${plural(care.length, "experiment")} to be `
    + "used with care, or with a warning";
  byId("care").querySelector("ol").append(...care.map((cell) => listed(cell, ...verdictWords(cell))));
  byId("/not-good").hidden = !bad.length && !care.length;
  return bad.length + care.length;
}

// Links to experiments, the first ones; of the others it says how many there are.
function linksTo(names) {
  const links = names.slice(0, FEW_LINKS).flatMap((name, k) => [...k ? [", "] : [],
    make("a", { href: addressOf(name) }, name)]);
  const more = names.length - FEW_LINKS;
  return more > 0 ? [...links, ` and ${more} more`] : links;
}

// What to do about the experiments of one verdict: each on its own if they are few.
function stepsFor(verdict, todo, wordsOf) {
  const those = data.cells.filter((cell) => cell.verdict === verdict);
  if (those.length > FEW_STEPS) {
    return [[make("strong", {}, `${todo} ${those.length}: `), ...linksTo(those.map(({ name }) => name))]];
  }
  return those.map((cell) => [make("strong", {}, `${todo} `), ...linksTo([cell.name]),
    `${cell.lfl_mm === null ? "" : ` (${setting(cell)})`}: ${wordsOf(cell)}`]);
}

function missingWords({ lfl, fd, target: what, gain }) {
  return `${Number(lfl.toPrecision(3))} mm, ${fd === "inf" ? "infinity" : `${Number(fd.toPrecision(3))} m`}, `
    + `${what === "drone" ? "drone" : `board ${what}`} (${short(gain, 2)} px)`;
}

function nextSteps() {
  const steps = [
    ...stepsFor("suspect", "Check what was typed for", (cell) => sentence(cell.suspicions[0])),
    ...stepsFor("do not use", "Film again", (cell) => sentence(cell.because.join("; "))),
    ...stepsFor("failed", "Mend", (cell) => `${sentence(cell.reason)} ${cell.advice}`),
    ...data.answer.filmNext.slice(0, FEW_STEPS).map(([text, names]) => [
      make("strong", {}, "Film: "), `${text} (`, ...linksTo(names), ")."]),
  ];
  if (data.answer.filmNext.length > FEW_STEPS) {
    steps.push([make("a", { href: "#/film-next" }, "All that is to be filmed")]);
  }
  if (data.missing.length) {
    steps.push([make("strong", {}, "Add experiments: "), `${data.missing.map(missingWords).join("; ")}. `
      + "In brackets: how much smaller the lens's largest sigma at the picture's corner becomes."]);
  }
  if (data.explorer) {
    steps.push(["Intrinsics at any setting, and where they are uncertain: ",
      make("a", { href: data.explorer, id: "explorer" }, "the lens explorer"), "."]);
  }
  return steps;
}

function buildNext() {
  const steps = nextSteps();
  byId("/next").hidden = !steps.length;
  byId("next-steps").append(...steps.map((step) => make("li", {}, ...step)));
}

function buildFilmNext() {
  byId("/film-next").hidden = data.answer.filmNext.length <= FEW_STEPS;
  byId("film-next").append(...data.answer.filmNext.map(([text, names]) => make("li", {},
    `${text} (`, ...names.flatMap((name, k) => [...k ? [", "] : [],
      make("a", { href: addressOf(name) }, name)]), ")")));
}

function buildOverview() {
  byId("title").textContent = data.camera ? `${data.lens} on ${data.camera}` : data.lens;
  byId("source").textContent = `Calibration report of ${plural(data.cells.length, "experiment")}, `
    + data.source;
  byId("usability").textContent = data.answer.usability;
  byId("counts").append(...data.answer.verdicts.map(([verdict, n]) => make("li", {},
    badge(verdict, `${n} ${verdict}`))));
  const [first, ...others] = data.answer.facts;
  const facts = [first, recipeWords(), ...others].filter(Boolean);
  byId("facts").replaceChildren(...facts.map((text) => make("li", { class: "number" }, text)));
  const placed = data.cells.filter((cell) => cell.place);
  byId("quantity").add(new Option("fx and its verdict", VERDICT));
  for (const quantity of QUANTITIES) {
    byId("quantity").add(new Option(titleOf(quantity), quantity.key));
  }
  if (data.cells.every(({ verdict }) => ["failed", "not judged"].includes(verdict))) {
    byId("quantity").value = QUANTITIES[0]?.key ?? VERDICT;
  }
  if (placed.length) buildPlane(placed);
  byId("/grid").hidden = !placed.length;
  const lost = data.cells.length - placed.length;
  if (lost) byId("unplaced").textContent = `${plural(lost, "experiment")} without a known setting: see `
    + "the list below.";
  const notGood = buildNotGood();
  buildNext();
  buildFilmNext();
  buildList();
  byId("off-paper").replaceChildren(...data.answer.offPaper ? [`${data.answer.offPaper.words} `,
    "Experiments: ", ...data.answer.offPaper.cells.flatMap((name, k) => [...k ? [", "] : [],
      make("a", { href: addressOf(name) }, name)]), "."] : []);
  byId("choose").hidden = !QUANTITIES.length;
  data.made.forEach((made, k) => {
    const n = data.cells.filter((cell) => cell.made === k).length;
    if (data.made.length > 1) byId("made-of").append(make("h3", {}, plural(n, "experiment")));
    byId("made-of").append(...madeOf(made));
  });
  // An experiment may have any name of a folder, which has no slash in it.
  const contents = [["/grid", "Experiments"], ["/not-good", `Not good, and warnings (${notGood})`],
    ["/intrinsics", "Intrinsics"], ["/made", "How it was made"]]
    .filter(([id]) => !byId(id).hidden).map(([id, text]) => make("a", { href: `#${id}` }, text));
  byId("contents").append(...contents);
  byId("quantity").addEventListener("change", paintCells);
  paintCells();
}
