// The lens explorer: one cursor on the plane of settings, and everything that follows it.

/* The cursor */

let waiting = false;

function follow() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(drawAll);
}

function drawAll() {
  waiting = false;
  const answers = lookups.map((lookup) => query(lookup, state.lfl, state.fd));
  const k = lookups.findIndex(({ name }) => name === state.scheme);
  drawAnswers(answers);
  drawPaper(answers);
  drawCorner(answers[k]);
  byId("words").textContent = statusWords(lookups[k], answers[k]);
  byId("words").dataset.status = STATUS_NAMES[answers[k].status];
  drawWeights(answers[k]);
  drawPicture();
  drawBreathing();
  drawCursor();
  showSetting();
  byId("experiment").value = experiments.find(({ lfl, fd }) => lfl === state.lfl
    && fd === state.fd)?.name ?? "";
  byId("pin").setAttribute("aria-pressed", state.pinned);
}

// The setting in its two inputs, but for the one that is being typed into.
function showSetting() {
  for (const [id, text] of [["lfl", String(state.lfl)], ["fd", fdText(state.fd)]]) {
    if (document.activeElement !== byId(id)) byId(id).value = text === "NaN" ? "" : text;
    byId(id).removeAttribute("aria-invalid");
  }
}

function moveTo(lfl, fd, words = null) {
  Object.assign(state, { lfl, fd, words });
  follow();
}

function setPinned(pinned) {
  state.pinned = pinned;
  follow();
  remember();
}

function pinAt(lfl, fd, words = null) {
  state.pinned = true;
  moveTo(lfl, fd, words);
  remember();
}

function step(du, dv) {
  const [from, to] = axis().range;
  if (!(state.lfl > 0 && state.fd > 0)) return;
  const u = clamp(axis().u(state.fd) + du * (to - from), from, axis().end);
  const v = clamp(Math.log(state.lfl) + dv * (vRange[1] - vRange[0]), ...vRange);
  const [lfl, fd] = fromPlane(u, v);
  pinAt(dv ? lfl : state.lfl, du ? fd : state.fd);
}

function nextExperiment(by) {
  const n = experiments.length;
  const now = experiments.findIndex(({ lfl, fd }) => lfl === state.lfl && fd === state.fd);
  const { lfl, fd } = experiments[now < 0 ? (by > 0 ? 0 : n - 1) : (now + by + n) % n];
  pinAt(lfl, fd);
}

function typed() {
  const wrong = [];
  const values = ["lfl", "fd"].map((id) => {
    const text = byId(id).value.trim().replace("\u221e", "inf");
    const value = parsedNumber(text);
    const good = value !== null && !Number.isNaN(value) && (id === "fd" || value !== Infinity);
    if (!good) wrong.push(id);
    return value;
  });
  if (wrong.length) {
    for (const id of wrong) byId(id).setAttribute("aria-invalid", "true");
    byId("words").textContent = "LFL is a number of millimetres, FD a number of metres or inf.";
    return;
  }
  pinAt(...values);
}

/* The address says what is looked at, so that a view can be sent to somebody */

let remembering = null, remembered = null;

// What is looked at where the address says nothing.
const beginning = (() => {
  const [one] = experiments;
  const [lfl, fd] = experiments.length === 1 ? [one.lfl, one.fd]
    : fromPlane((axes.inverse.u(nearest) + axes.inverse.u(farthest)) / 2,
      (Math.log(leastLfl) + Math.log(mostLfl)) / 2);
  return { ...state, lfl, fd };
})();

function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const { lfl, fd, scheme, show, axis: kind } = state;
    const known = state.pinned && lfl > 0 && fd > 0 ? `lfl=${lfl}&fd=${fdText(fd)}&` : "";
    const hash = `#${known}scheme=${scheme}&show=${showName(show)}&axis=${kind}`;
    remembered = hash;
    if (hash !== location.hash) location.hash = hash;
  }, 250);
}

const KINDS = { value: "", sigma: "sigma-", percent: "percent-", left: "left-out-", z: "z-" };
const ALONE = { none: "none", corner: "sigma-corner", worst: "z-largest" };

function showName(show) {
  const [kind, k] = show.split("-");
  return ALONE[kind] ?? KINDS[kind] + NAMES[k];
}

function showNamed(name) {
  return [...byId("show").options].map(({ value }) => value).find((one) => showName(one) === name);
}

function recall() {
  const said = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, beginning);
  if (lookupOf(said.get("scheme"))) state.scheme = said.get("scheme");
  state.show = showNamed(said.get("show")) ?? state.show;
  if (Object.hasOwn(axes, said.get("axis"))) state.axis = said.get("axis");
  const lfl = parsedNumber(said.get("lfl") ?? ""), fd = parsedNumber(said.get("fd") ?? "");
  if (lfl > 0 && fd > 0 && lfl !== Infinity) {
    Object.assign(state, { lfl, fd, pinned: true });
  }
}

function showState() {
  for (const id of ["scheme", "show", "axis"]) byId(id).value = state[id];
  markScheme();
  drawPlane();
  drawClip();
  follow();
}

function choose(changes) {
  Object.assign(state, changes);
  showState();
  remember();
}

/* All together */

function measuredWords() {
  const n = data.names.length, unknown = data.isMeasured.filter((is) => !is).length;
  if (unknown === 0) return "";
  return `${unknown === n ? "No experiment has" : `${unknown} of ${n} experiments do not have`} a `
    + "covariance: where these take part, schemes between neighbours do not know sigma, and there "
    + `is a question mark.${smooth ? " The smooth lens takes it from how experiments scatter." : ""}`;
}

// What can be shown on the plane.
function addShown() {
  const each = (kind, words) => NAMES.map((name, k) => new Option(words(name), `${kind}-${k}`));
  const group = (label, ...options) => make("optgroup", { label }, ...options);
  const all = (...options) => (smooth ? options : []);
  byId("show").append(group("Intrinsics", ...each("value", (name) => name)),
    group("Sigma", ...all(new Option("sigma at the picture's corner", "corner-0")),
      ...NAMES.slice(0, 2).map((name, k) => new Option(`sigma of ${name} in %`, `percent-${k}`)),
      ...each("sigma", (name) => `sigma of ${name}`)),
    group("Leave-one-out", ...each("left", (name) => `leave-one-out error of ${name}`)),
    ...all(group("z-scores of the experiments", new Option("largest z-score", "worst-0"),
      ...each("z", (name) => `z-score of ${name}`))),
    new Option("experiments only", "none"));
}

function begin() {
  const n = data.names.length;
  byId("title").textContent = `${data.lens} on ${data.camera}: lens explorer`;
  const range = isColumn ? `${short(leastLfl)} mm only`
    : `${short(leastLfl)} to ${short(mostLfl)} mm`;
  byId("about").textContent = `${plural(n, "experiment")}, LFL ${range}, FD `
    + `${n === 1 ? metres(nearest) : `${short(nearest)} to ${metres(Math.max(...data.fd))}`}, `
    + `${width} \u00d7 `
    + `${height} px`;
  byId("foot").textContent = "Pixel (0, 0) is the centre of the top-left pixel. LFL is the lens's "
    + "focal length, FD the focus distance, CFL the camera's focal length.";
  byId("measured").textContent = measuredWords();
  addShown();
  byId("scheme").append(...lookups.map(({ name }) => new Option(name, name)));
  byId("experiment").append(new Option(NONE, ""),
    ...data.names.map((name) => new Option(name, name)));
  recall();
  makeAnswers();
  makeLeftOut();
  showState();
  drawAll();
  listen();
  requestAnimationFrame(() => setTimeout(() => {
    makePlane();
    whenSeen(byId("grid"), makePicture);
    whenSeen(byId("breathing"), makeBreathing);
  }));
}

function listen() {
  for (const id of ["scheme", "show", "axis"]) {
    byId(id).addEventListener("change", () => choose({ [id]: byId(id).value }));
  }
  for (const id of ["lfl", "fd"]) {
    byId(id).addEventListener("change", typed);
    // What is no number stays to be mended, and what was typed beside it stays too.
    byId(id).addEventListener("blur", () => {
      if (!document.querySelector("input[aria-invalid]")) showSetting();
    });
  }
  byId("experiment").addEventListener("change", () => {
    const chosen = experiments.find(({ name }) => name === byId("experiment").value);
    if (chosen) pinAt(chosen.lfl, chosen.fd);
  });
  byId("pin").addEventListener("click", () => setPinned(!state.pinned));
  byId("enlarged").addEventListener("change", drawPicture);
  byId("plane-keys").addEventListener("keydown", (event) => {
    const arrow = arrowOf(event), size = event.shiftKey ? 0.05 : 0.005;
    if (!arrow) return;
    event.preventDefault();
    step(size * arrow[0], -size * arrow[1]);
  });
  const back = () => walk(-25), on = () => walk(25);
  onKeys({
    n: () => nextExperiment(1), p: () => nextExperiment(-1),
    s: () => choose({ scheme: lookups[(lookups.indexOf(lookupOf(state.scheme)) + 1)
      % lookups.length].name }),
    a: () => choose({ axis: state.axis === "log" ? "inverse" : "log" }),
    Escape: () => { if (state.pinned) setPinned(false); },
    ",": () => walk(-1), ".": () => walk(1), "<": back, ">": on, "Shift+Comma": back,
    "Shift+Period": on,
  });
  addEventListener("hashchange", () => {
    if (location.hash === remembered) return;
    remembered = null;
    clearTimeout(remembering);
    recall();
    showState();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (plane.chart) drawHeat();
  });
  listenForFiles();
}

// For tests, and for whoever opens the console.
window.explorer = {
  answer: (lfl, fd, scheme = state.scheme) => {
    const lookup = lookupOf(scheme), answer = query(lookup, lfl, fd);
    const weighted = (row, k) => ({ name: data.names[row], weight: answer.weights[k] });
    return { status: STATUS_NAMES[answer.status], intrinsics: answer.intrinsics,
      sigma: sigmaOf(lookup, answer), corner: cornerSigma(lookup, answer), vertices: answer.vertices.map(weighted) };
  },
  clip: () => clip,
};

begin();
