// All experiments, or one of them: the address says which.

let current = null;

// Figures are made when they are first seen, or a moment later: whoever prints wants all of them.
// They hear of every experiment from then on. One is made anew for an experiment of another kind: a
// picture of another size, or single corners in the place of many.
const SEEN_AFTER_MS = 800;
const drawings = [];

function addDrawing(section, draw, known, words = () => {}, kindOf = () => "") {
  const element = section.querySelector(".drawn");
  const drawing = { section, element, draw, known, words, kindOf, seen: false, chart: null };
  drawings.push(drawing);
  whenSeen(element, () => {
    drawing.seen = true;
    redraw(drawing);
  });
  return drawing;
}

function redraw(drawing) {
  if (!current) return;
  drawing.section.hidden = !drawing.known(current);
  if (drawing.section.hidden) return;
  drawing.words(current);
  if (!drawing.seen) return;
  const kind = drawing.kindOf(current);
  if (!drawing.chart || drawing.kind !== kind) {
    drawing.chart?.remove();
    [drawing.chart, drawing.update] = drawing.draw(drawing.element, current);
    drawing.kind = kind;
  }
  drawing.update(current);
}

function drawAll() {
  for (const drawing of drawings.filter(({ seen }) => !seen)) {
    drawing.seen = true;
    redraw(drawing);
  }
}

function buildDrawings() {
  const sizeOf = ({ size }) => size.join();
  addDrawing(byId("coverage"), drawCoverage, ({ coverage }) => coverage, coverageWords,
    (cell) => `${sizeOf(cell)},${cell.coverage.points !== undefined}`);
  addDrawing(byId("vectors"), drawVectors, ({ residuals }) => residuals, vectorWords, sizeOf);
  addDrawing(byId("histogram"), drawHistogram, ({ residuals }) => residuals, histogramWords);
  addDrawing(byId("uncertainty"), drawUncertainty, ({ ok }) => ok, uncertaintyWords, sizeOf);
  buildRollouts();
  const distortion = addDrawing(byId("distortion"), drawDistortion, ({ ok }) => ok,
    distortionWords, sizeOf);
  byId("exaggerate").addEventListener("change", () => redraw(distortion));
  addDrawing(byId("views"), drawViews, ({ ok }) => ok, buildViews);
}

function showExperiment(cell) {
  current = cell;
  byId("name").textContent = cell.name;
  byId("setting").textContent = `${setting(cell)}, ${target(cell)}${cell.ok ? "" : ", failed"}`;
  const judged = make("div", { class: `card notice ${classOf(cell.verdict)}`, id: "judged" },
    make("strong", {}, "Verdict: "), badge(cell.verdict), ...verdictWords(cell));
  const notices = [cell.ok ? judged
    : make("div", { class: "card notice is-failed" }, ...failureWords(cell), ...verdictWords(cell))];
  if (cell.ok && cell.unseen) notices.push(make("div", { class: "card notice" }, cell.unseen));
  byId("notices").replaceChildren(...notices);
  for (const id of ["answer", "stages"]) byId(id).hidden = !cell.ok;
  if (cell.ok) {
    buildIntrinsics(cell);
    buildWords(cell);
    buildStages(cell);
  }
  buildPictures(cell);
  buildProvenance(cell);
  drawings.forEach(redraw);
  setTimeout(drawAll, SEEN_AFTER_MS);
  const at = data.cells.indexOf(cell);
  byId("place").textContent = `${cell.name}: ${at + 1} of ${data.cells.length}`;
  byId("previous").disabled = at === 0;
  byId("next").disabled = at === data.cells.length - 1;
}

function route() {
  const name = addressed(), cell = cells.get(name) ?? null, before = current;
  byId("overview").hidden = cell !== null;
  byId("experiment").hidden = cell === null;
  byId("walk").hidden = cell === null;
  const run = byId("title").textContent;
  document.title = `${cell ? `${cell.name}, ` : ""}${run}: calibration report`;
  if (cell) {
    showExperiment(cell);
    // From one experiment to the next a figure stays in sight, to be compared.
    if (!before) scrollTo(0, 0);
    byId("name").focus({ preventScroll: true });
    return;
  }
  current = null;
  byId("place").textContent = "";
  if (before && !name) {
    [...document.querySelectorAll("#plane a"), ...document.querySelectorAll("#overview a")]
      .find((link) => link.getAttribute("href") === addressOf(before.name))?.focus();
  } else if (name) document.getElementById(name)?.scrollIntoView();
}

function walk(step) {
  const next = data.cells[data.cells.indexOf(current) + step];
  if (current && next) location.hash = addressOf(next.name);
}

buildOverview();
buildDrawings();
byId("previous").addEventListener("click", () => walk(-1));
byId("next").addEventListener("click", () => walk(1));
addEventListener("hashchange", route);
addEventListener("beforeprint", drawAll);
onKeys({ n: () => walk(1), p: () => walk(-1),
  Escape: () => { if (current) location.hash = ""; } });
route();
