// Methods by colours and dashes, and the tables of their scores.

const COLOURS = 7, DASHES = [[], [7, 3], [2, 2], [8, 3, 2, 3]];
const hidden = new Set();
const colourName = (method) => `m${method % COLOURS}`;
const dashOf = (method) => DASHES[method % DASHES.length];

function drawing(width, height, ...children) {
  return makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none",
    "aria-hidden": "true" }, ...children);
}

function path(name, d, method = null, filled = false) {
  const element = makeSvg("path", { class: name, d });
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
  const rows = content.rows.map((row) => make("tr", {}, ...row.map(cellOf)));
  const table = make("table", { "aria-label": caption });
  fill(table, heads, rows);
  function sort(place) {
    const now = heads[place].getAttribute("aria-sort");
    const down = now ? now === "ascending" : content.headings[place].down;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[place].setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = content.rows.map((row, number) => number);
    order.sort((a, b) => compare(content.rows[a][place].key, content.rows[b][place].key, down));
    table.tBodies[0].append(...order.map((number) => rows[number]));
  }
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
    const [step] = arrowOf(event) ?? [0];
    if (!step || event.target !== owner) return;
    move(step * (event.shiftKey ? 10 : 1));
    event.preventDefault();
  };
}
