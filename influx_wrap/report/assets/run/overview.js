// All experiments: the failed ones, the grid, and those that have no place in it.

const QUANTITIES = [
  { key: "error", label: "|error of fx|", unit: " %" },
  { key: "overBound", label: "|error of fx| / bound", unit: "" },
  { key: "sigma", label: "sigma of fx", unit: " %" },
  { key: "projection", label: "projection uncertainty, median", unit: " px" },
  { key: "rms", label: "RMS of the residuals", unit: " px" },
  { key: "views", label: "views used", unit: "", counts: true },
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
  const colours = ramp(quantity.counts ? "value" : "error");
  const colour = (value) => {
    const share = high > low ? (bend(value) - bend(low)) / (bend(high) - bend(low)) : 0;
    return shade(colours, share);
  };
  return { low, high, colours, colour };
}

function worded(value, { counts }) { return counts ? `${value}` : short(value, 2); }

function titleOf({ label, unit }) { return unit ? `${label},${unit}` : label; }

function cellLink(cell) {
  return make("a", { class: cell.ok ? "cell" : "cell failed", href: addressOf(cell.name),
    "data-cell": cell.name }, make("span", { class: "number" }),
  make("small", {}, cell.target ?? ""));
}

function paintCells() {
  const quantity = QUANTITIES.find(({ key }) => key === byId("quantity").value);
  const scale = quantity && scaleOf(quantity);
  for (const link of document.querySelectorAll(".cell")) {
    const cell = cells.get(link.dataset.cell);
    const said = `${cell.name}, ${setting(cell)}, `;
    const value = link.firstChild;
    if (!cell.ok) {
      value.replaceChildren(make("span", { class: "said" }, said), "failed");
      continue;
    }
    const known = cell.values[quantity.key] !== null;
    value.replaceChildren(make("span", { class: "said" }, said, `${quantity.label} `),
      known ? worded(cell.values[quantity.key], quantity) : NONE,
      make("span", { class: "said" }, `${quantity.unit}, `));
    value.dataset.value = cell.values[quantity.key];
    const colour = known ? scale.colour(cell.values[quantity.key]) : null;
    link.style.background = colour ?? "";
    link.style.color = colour ? inkOn(colour) : "";
  }
  for (const holder of document.querySelectorAll("[data-listed]")) {
    const cell = cells.get(holder.dataset.listed);
    const value = cell.ok ? cell.values[quantity.key] : null;
    holder.textContent = value === null ? "" : worded(value, quantity);
  }
  const heading = byId("list-quantity");
  if (heading && quantity) heading.textContent = titleOf(quantity);
  if (!quantity) return;
  const bar = make("span", { class: "bar", "aria-hidden": "true" });
  const stops = [0, 64, 128, 191, 255].map((k) => scale.colours[k]);
  bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  const ends = [scale.low, scale.high].map((value) => worded(value, quantity));
  byId("scale").replaceChildren(ends[0], make("span", { class: "said" }, " to "), bar,
    `${ends[1]}${quantity.unit}`);
}

// A grid of places [zoom, focus], without rows and columns in which there is nothing.
function buildPlane(placed) {
  const zooms = data.lfl_mm.map((_, k) => k).filter((k) => placed.some((c) => c.place[0] === k));
  const focuses = data.fd_m.map((_, k) => k).filter((k) => placed.some((c) => c.place[1] === k));
  const at = new Map(placed.map((cell) => [cell.place.join(), cell]));
  const rows = focuses.map((focus) => make("tr", {},
    header("row", `${metres(data.fd_m[focus])} m`, make("small", {}, `f${focus}`)),
    ...zooms.map((zoom) => {
      const cell = at.get(`${zoom},${focus}`);
      return make("td", {}, cell ? cellLink(cell) : make("span", { class: "nothing" }, NONE));
    })));
  fill(byId("plane"), [header("col", "FD", make("span", { class: "said" }, " and LFL")),
    ...zooms.map((zoom) => header("col", `${Number(data.lfl_mm[zoom].toFixed(2))} mm`,
      make("small", {}, `z${zoom}`)))], rows);
  byId("plane").style.minWidth = `${5.5 + 4.8 * zooms.length}rem`;
  byId("plane").style.width = zooms.length < 6 ? "auto" : "";
  byId("plane").prepend(make("caption", { class: "said" },
    "Experiments by focus distance and lens focal length"));
  const links = [...byId("plane").querySelectorAll(".cell")];
  links.forEach((link, k) => { link.tabIndex = k ? -1 : 0; });
  byId("plane").addEventListener("focusin", ({ target: link }) => {
    if (!link.matches(".cell")) return;
    for (const other of links) other.tabIndex = other === link ? 0 : -1;
  });
  byId("plane").addEventListener("keydown", (event) => {
    const step = arrowOf(event), cell = cells.get(event.target.dataset.cell);
    if (!step || !cell) return;
    event.preventDefault();
    const [dz, df] = step;
    let [zoom, focus] = cell.place;
    while (zoom >= 0 && focus >= 0 && zoom < data.lfl_mm.length && focus < data.fd_m.length) {
      zoom += dz;
      focus += df;
      const next = at.get(`${zoom},${focus}`);
      if (next) {
        links.find((link) => link.dataset.cell === next.name).focus();
        return;
      }
    }
  });
}

function buildList(listed, alone) {
  byId("others-title").textContent = alone ? "Experiments" : "Experiments outside the plan";
  const head = ["experiment", "LFL (mm)", "FD (m)", "target", "status"].map((text, k) => {
    const cell = header("col", text);
    if (!k || k > 2) cell.className = "left";
    return cell;
  });
  if (QUANTITIES.length) head.push(make("th", { scope: "col", id: "list-quantity" }));
  fill(byId("list"), head, listed.map((cell) => {
    const row = make("tr", {},
      make("th", { scope: "row", class: "left" }, make("a", { href: addressOf(cell.name) }, cell.name)),
      number(cell.lfl_mm, cell.lfl_mm === null ? "" : `${Number(cell.lfl_mm.toFixed(2))}`, "td"),
      number(cell.fd_m, cell.fd_m === null ? "" : metres(cell.fd_m), "td"),
      make("td", { class: "left" }, cell.target ?? ""),
      make("td", { class: "left" }, cell.ok ? "ok" : "failed"));
    if (QUANTITIES.length) row.append(make("td", { class: "number", "data-listed": cell.name }));
    return row;
  }));
}

function failure(cell) {
  return make("li", { class: "card failure" },
    make("a", { href: addressOf(cell.name) }, cell.name), " ",
    make("span", { class: "where" }, `${setting(cell)}, ${target(cell)}`),
    ...failureWords(cell));
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

function buildOverview() {
  byId("title").textContent = data.camera ? `${data.lens} on ${data.camera}` : data.lens;
  const facts = [data.facts[0], recipeWords(), ...data.facts.slice(1)].filter(Boolean);
  byId("facts").replaceChildren(...facts.map((text) => make("li", { class: "number" }, text)));
  const failed = data.cells.filter((cell) => !cell.ok);
  const placed = data.cells.filter((cell) => cell.place);
  const listed = data.cells.filter((cell) => !cell.place);
  for (const quantity of QUANTITIES) {
    byId("quantity").add(new Option(titleOf(quantity), quantity.key));
  }
  if (failed.length) byId("failed").append(...failed.map(failure));
  if (placed.length) buildPlane(placed);
  if (listed.length) buildList(listed, !placed.length);
  for (const [id, wanted] of [["/failures", failed], ["/grid", placed], ["/others", listed]]) {
    byId(id).hidden = !wanted.length;
  }
  byId("choose").hidden = !QUANTITIES.length;
  if (!placed.length && QUANTITIES.length) byId("others-title").after(byId("choose"));
  data.made.forEach((made, k) => {
    const n = data.cells.filter((cell) => cell.made === k).length;
    if (data.made.length > 1) byId("made-of").append(make("h3", {}, plural(n, "experiment")));
    byId("made-of").append(...madeOf(made));
  });
  // An experiment may have any name of a folder, which has no slash in it.
  byId("contents").append(...[["/failures", `Failed (${failed.length})`], ["/grid", "Experiments"],
    ["/others", placed.length ? "Outside the plan" : "Experiments"], ["/made", "How it was made"]]
    .filter(([id]) => !byId(id).hidden).map(([id, text]) => make("a", { href: `#${id}` }, text)));
  byId("quantity").addEventListener("change", paintCells);
  paintCells();
}
