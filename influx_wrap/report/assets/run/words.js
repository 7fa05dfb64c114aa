// Numbers and words as all parts of the report write them.

const cells = new Map(data.cells.map((cell) => [cell.name, cell]));
const STAGES = { initialisation: "initialisation", all_views: "best fit to all views",
  result: "result" };

function short(value, digits = 3) {
  return value === null || value === undefined ? "" : significant(value, digits, 1e-5);
}

// Nothing is not negative, and a minus is no hyphen.
function fixed(value, digits) {
  return value.toFixed(digits).replace(/^-([0.]+)$/, "$1").replace("-", "\u2212");
}

function signed(value, digits) {
  return fixed(value, digits).replace(/^(?=[0-9])/, "+");
}

function number(value, text, tag = "span") {
  if (value === null || value === undefined) return make(tag, {}, "");
  return make(tag, { class: "number", "data-value": value }, text);
}

function sum(values) { return values.reduce((total, value) => total + value, 0); }

function sentence(text) { return /[.?!]$/.test(text) ? text : `${text}.`; }

function metres(fd) { return fd === "inf" ? "\u221e" : `${Number(fd.toFixed(2))}`; }

function setting(cell) {
  const parts = [];
  if (cell.lfl_mm !== null) parts.push(`${Number(cell.lfl_mm.toFixed(2))} mm`);
  if (cell.fd_m !== null) parts.push(cell.fd_m === "inf" ? "infinity" : `${metres(cell.fd_m)} m`);
  return parts.join(", ") || "setting not known";
}

function target(cell) {
  if (cell.target === null) return "target not known";
  return cell.target === "drone" ? "drone" : `board ${cell.target}`;
}

// Horizontal and vertical.
function fieldOfViewWords({ fieldOfView }, digits) {
  return fieldOfView.slice(0, 2).map((angle) => (angle === null ? NONE : `${angle.toFixed(digits)}\u00b0`))
    .join(" \u00d7 ");
}

function caption(section, ...children) {
  section.querySelector(".caption").replaceChildren(...children);
}

function strong(text) { return make("strong", { class: "number" }, text); }
