// The review of a flight's flashes: a card for each, and review.csv of what was decided.

const [WIDTH, HEIGHT] = data.size;
const cards = data.cards.map((card) => ({ ...card }));
let changed = false;

function pictureOf(card) {
  return card.pictures.find((picture) => picture.frame === card.frame) || null;
}

function setCentre(card, u, v) {
  card.uv = [clamp(u, -0.5, WIDTH - 0.5), clamp(v, -0.5, HEIGHT - 0.5)];
  if (card.action !== "use" && isComplete(card)) decide(card, "use");
  changed = true;
}

function isComplete(card) { return Boolean(card.reading && card.uv && card.frame !== null); }

function setAction(card, action) {
  if (action === "use" && !isComplete(card)) return;
  decide(card, action);
}

function setReading(card, reading) {
  card.reading = reading;
  if (isComplete(card)) decide(card, "use");
  else decide(card, card.action === "use" ? "undecided" : card.action);
}

// What the person has decided about a card holds, whatever becomes of others.
function decide(card, action) {
  giveBack(card);
  card.action = action;
  card.leftFor = null;
  if (action === "use") takeOver(card);
  changed = true;
}

// The card that stood for the reading's missing flash is left out as long as this one has it.
function takeOver(card) {
  for (const other of cards) {
    if (other === card || other.flash || other.reading !== card.reading) continue;
    if (other.action === "leave") continue;
    Object.assign(other, { before: other.action, action: "leave", leftFor: card });
  }
}

// Another card may have taken the same reading meanwhile.
function giveBack(card) {
  for (const other of cards) {
    if (other.leftFor !== card) continue;
    other.leftFor = cards.find((one) => one !== card && one.action === "use"
      && one.reading === other.reading) ?? null;
    if (!other.leftFor) other.action = other.before;
  }
}

function stepFrame(card, step) {
  const frames = card.pictures.map((picture) => picture.frame);
  if (!frames.length) return;
  const at = frames.indexOf(card.frame);
  card.frame = frames[clamp(at < 0 ? 0 : at + step, 0, frames.length - 1)];
  changed = true;
}

function conflicts() {
  const used = cards.filter((card) => card.action === "use");
  const twice = new Set();
  const places = new Map(data.readings.map((name, place) => [name, place]));
  used.forEach((card) => used.forEach((other) => {
    if (card === other) return;
    const order = places.get(card.reading) - places.get(other.reading);
    if (order === 0 || (order < 0) !== (card.frame < other.frame)) twice.add(card);
  }));
  return twice;
}

function view(card, kind) {
  const box = make("div", { class: "view", "data-kind": kind });
  const image = make("img", { alt: "", draggable: "false" });
  const lines = [0, 1, 2, 3].map(() => makeSvg("line", {})), circle = makeSvg("ellipse", {});
  const cross = makeSvg("svg", { preserveAspectRatio: "none" }, ...lines, circle);
  box.append(image, cross);
  const put = (event) => {
    const area = areaOf(card, kind);
    if (!area) return;
    const bounds = box.getBoundingClientRect();
    const x = (event.clientX - bounds.left) / bounds.width;
    const y = (event.clientY - bounds.top) / bounds.height;
    setCentre(card, area.left + x * area.width - 0.5, area.top + y * area.height - 0.5);
    draw();
  };
  // A finger that moves scrolls the page: only its tap, which is a click, sets the centre.
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    box.setPointerCapture(event.pointerId);
    put(event);
  });
  box.addEventListener("pointermove", (event) => {
    if (event.buttons & 1 && event.pointerType !== "touch") put(event);
  });
  box.addEventListener("click", put);
  return { box, image, cross, lines, circle, kind };
}

function areaOf(card, kind) {
  const picture = pictureOf(card);
  if (!picture || !picture[kind]) return null;
  return kind === "crop" ? picture.crop
    : { left: 0, top: 0, width: WIDTH, height: HEIGHT, src: picture.whole.src };
}

// Where keys begin if there is no centre yet: where it is expected, or in the middle.
function startOf(card) {
  if (card.frame === null) return null;
  const area = areaOf(card, "crop") ?? areaOf(card, "whole");
  if (card.guess || !area) return card.guess;
  return [area.left + (area.width - 1) / 2, area.top + (area.height - 1) / 2];
}

function drawView(card, shown) {
  const area = areaOf(card, shown.kind);
  shown.box.hidden = !area;
  if (!area) return;
  if (shown.image.getAttribute("src") !== area.src) shown.image.src = area.src;
  shown.image.alt = shown.kind === "crop" ? `Part of frame ${card.frame}` : `Frame ${card.frame}`;
  shown.cross.setAttribute("viewBox", `0 0 ${area.width} ${area.height}`);
  shown.circle.setAttribute("display", card.guess && !card.uv ? "inline" : "none");
  if (card.guess) {
    setAll(shown.circle, { cx: card.guess[0] - area.left + 0.5, cy: card.guess[1] - area.top + 0.5,
      rx: area.width / 20, ry: area.width / 20 });
  }
  const lines = shown.lines;
  for (const line of lines) line.setAttribute("display", card.uv ? "inline" : "none");
  if (!card.uv) return;
  const x = card.uv[0] - area.left + 0.5, y = card.uv[1] - area.top + 0.5;
  const gap = area.width / 60, reach = area.width / 12;
  [[1, 0], [-1, 0], [0, 1], [0, -1]].forEach(([dx, dy], k) => {
    setAll(lines[k], { x1: x + dx * gap, y1: y + dy * gap, x2: x + dx * reach,
      y2: y + dy * reach });
  });
}

function build(card, number) {
  const views = [view(card, "crop"), view(card, "whole")];
  const note = make("p", { class: "note" }, card.note);
  const conflict = make("p", { class: "note" });
  const where = make("span", { class: "number", "data-field": "centre" });
  const frame = make("span", { class: "number", "data-field": "frame" });
  const before = make("button", { type: "button", title: "earlier frame",
    "aria-label": "earlier frame" }, "[");
  const after = make("button", { type: "button", title: "later frame",
    "aria-label": "later frame" }, "]");
  before.addEventListener("click", () => { stepFrame(card, -1); draw(); });
  after.addEventListener("click", () => { stepFrame(card, 1); draw(); });
  const choice = make("select", { id: `reading-${number}` }, new Option("none", ""));
  for (const name of data.readings) choice.add(new Option(name, name));
  choice.value = card.reading;
  choice.addEventListener("change", () => { setReading(card, choice.value); draw(); });
  const actions = ["use", "leave", "undecided"].map((action) => {
    const text = { use: "Use", leave: "Leave out", undecided: "Undecided" }[action];
    const button = make("button", { type: "button", "data-action": action }, text);
    button.addEventListener("click", () => { setAction(card, action); draw(); });
    return button;
  });
  const heading = make("h2", { id: `heading-${number}` },
    card.flash ? `Flash detected in frame ${card.flash}`
      : `No flash detected for reading ${card.reading}`);
  const section = make("div", { class: "card", role: "group", tabindex: "0",
    "aria-labelledby": heading.id },
    make("div", { class: "views" }, ...views.map((shown) => shown.box)),
    make("div", { class: "side" }, heading, note, conflict,
      make("p", {}, make("label", { class: "of", for: choice.id }, "Reading"), choice),
      make("p", {}, make("span", { class: "of" }, "Frame"), frame, " ", before, " ", after),
      make("p", {}, make("span", { class: "of" }, "Centre"), where),
      make("p", {}, ...actions.flatMap((button) => [button, " "]))));
  section.addEventListener("keydown", (event) => key(event, card));
  addressOnFocus(section, `card-${number + 1}`);
  return { section, views, where, frame, choice, actions, conflict };
}

function key(event, card) {
  if (isTaken(event)) return;
  if (event.key === "Enter" && event.target.tagName === "BUTTON") return;
  const arrow = arrowOf(event), step = event.shiftKey ? 5 : 0.25;
  if (arrow) {
    const from = card.uv ?? startOf(card);
    if (!from) return;
    const [dx, dy] = card.uv ? arrow : [0, 0];
    setCentre(card, from[0] + step * dx, from[1] + step * dy);
  } else if (event.key === "Delete" || event.key === "Backspace") setAction(card, "leave");
  else if (event.key === "Enter") setAction(card, "use");
  else if (event.key === "[") stepFrame(card, -1);
  else if (event.key === "]") stepFrame(card, 1);
  else return;
  event.preventDefault();
  draw();
}

function draw() {
  const wrong = conflicts();
  cards.forEach((card, number) => {
    const shown = elements[number];
    shown.section.className = `card ${card.action}`;
    shown.views.forEach((one) => drawView(card, one));
    shown.where.textContent = card.uv ? `${card.uv[0].toFixed(2)}, ${card.uv[1].toFixed(2)}`
      : "not set: click where the LED is";
    shown.frame.textContent = card.frame === null ? "not in the video" : card.frame;
    shown.choice.value = card.reading;
    shown.actions.forEach((button) => {
      button.setAttribute("aria-pressed", button.dataset.action === card.action);
    });
    shown.conflict.textContent = wrong.has(card)
      ? "Another flash in use has the same reading, or the order of frames and readings differs."
      : "";
  });
  const open = cards.filter((card) => card.action === "undecided").length;
  const state = byId("state");
  const parts = [`${cards.filter((card) => card.action === "use").length} in use`];
  if (open) parts.push(`${open} undecided`);
  if (wrong.size) parts.push(`${wrong.size} in conflict`);
  if (changed) parts.push("not saved");
  state.textContent = parts.join(", ");
  state.className = open || wrong.size ? "open" : "";
}

function field(value) {
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function asCsv() {
  const rows = cards.map((card) => [card.flash, card.reading, card.frame ?? "",
    card.uv ? card.uv[0].toFixed(3) : "", card.uv ? card.uv[1].toFixed(3) : "", card.action]);
  // A reading whose flash was given to another has no card left.
  const named = new Set(cards.map((card) => card.reading));
  for (const name of data.readings) {
    if (!named.has(name)) rows.push(["", name, "", "", "", "leave"]);
  }
  return [data.columns, ...rows].map((row) => row.map(field).join(",") + "\n").join("");
}

function save() {
  const url = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
  const link = make("a", { href: url, download: data.file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  changed = false;
  draw();
}

function goUndecided() {
  const at = focusedOf(sections);
  const open = sections.filter((_, number) => cards[number].action === "undecided");
  const next = open.find((section) => sections.indexOf(section) > at) ?? open[0];
  if (next) focusOn(next, "start");
}

// A number beyond the last card is the last card's.
function goLinked() {
  const linked = /^card-(\d+)$/.exec(addressed());
  if (linked && cards.length) {
    focusOn(sections[clamp(Number(linked[1]) - 1, 0, sections.length - 1)], "start");
  }
}

byId("title").textContent = `LED review of ${data.title}`;
const elements = cards.map(build), sections = elements.map(({ section }) => section);
byId("cards").append(...sections);
byId("save").addEventListener("click", save);
onKeys({ n: () => focusNext(sections, 1, "start"), p: () => focusNext(sections, -1, "start"),
  u: goUndecided, s: save });

window.addEventListener("hashchange", goLinked);
window.addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
draw();
goLinked();
