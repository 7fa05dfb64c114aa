// One camera: verdict, intrinsics, figures, views.

const GRADES = { good: "good", "usable with care": "care" };
const ANSWERS = { good: "Yes: good", "usable with care": "With care", "do not use": "No: do not use them" };
const FIGURES = {
  residuals: "Residuals over the picture, observed minus projected. They should be short and point "
    + "anywhere; arrows that agree with their neighbours show what the lens model or the board's "
    + "description cannot say.",
  coverage: "Where corners were seen. Distortion is known where there are some.",
  contact: "The views, with the corners that were found.",
};

function lines(id, texts) { byId(id).append(...texts.map((text) => make("li", {}, text))); }

function number(value, digits) {
  return make("td", { class: "number" }, value === null ? NONE : value.toFixed(digits).replace("-", "\u2212"));
}

function decimals(sigma) {
  return sigma > 0 ? clamp(1 - Math.floor(Math.log10(sigma)), 0, 9) : 6;
}

function degrees(angle) { return angle === null ? "beyond the model" : `${angle.toFixed(2)}°`; }

byId("title").append(`Camera calibration of ${data.title}`);
byId("verdict").classList.add(GRADES[data.grade] ?? "not");
byId("grade").append(ANSWERS[data.grade] ?? "Not judged");
lines("reasons", data.reasons);
if (data.filmNext.length) byId("next").append(`Film next: ${data.filmNext.join("; ")}.`);

fill(byId("intrinsics"), ["", "value", "sigma"].map((text) => header("col", text)),
  data.names.map((name, k) => make("tr", {}, header("row", withUnit(name, k)),
    number(data.intrinsics[k], decimals(data.sigma[k])),
    number(data.sigma[k], decimals(data.sigma[k])))));
const [across, down, diagonal] = data.fieldOfView.map(degrees);
lines("said", [
  `Field of view: ${across} horizontal, ${down} vertical, ${diagonal} diagonal, of `
    + `${data.size[0]} x ${data.size[1]} pixels.`,
  `Residuals: ${data.rms.toPrecision(3)} px RMS per axis over ${plural(data.corners, "corner")}.`,
  `Sigma of a projected point: ${data.projection.median.toPrecision(2)} px (median over the `
    + `picture), ${data.projection.worst.toPrecision(2)} px at worst.`,
]);
lines("facts", data.facts);
if (data.offPaper) lines("facts", [`By the paper's rule it would be another answer: ${data.offPaper}`]);
lines("notes", [...data.notes, ...data.warnings]);

for (const [kind, words] of Object.entries(FIGURES)) {
  byId("figures").append(make("figure", { class: "card" }, make("figcaption", {}, words),
    make("div", { class: kind === "contact" ? "contact" : "", ...kind === "contact"
      ? { tabindex: "0", role: "region", "aria-label": "Contact sheet" } : {} },
    make("img", { src: data.figures[kind], alt: words }))));
}

fill(byId("views"), ["view", "RMS (px)", "corners used", "left out", ""]
  .map((text) => header("col", text)),
[...data.views].sort((a, b) => (b[4] ?? Infinity) - (a[4] ?? Infinity) || 0)
  .map(([name, reason, used, removed, rms]) => make("tr", {}, header("row", name),
    number(rms, 3), number(used, 0), number(removed, 0),
    make("td", {}, reason === null ? "" : `left out: ${reason}`))));
