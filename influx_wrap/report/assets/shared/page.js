"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const NONE = "\u2013";
const byId = (id) => document.getElementById(id);

/* Elements */

function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function make(tag, attributes, ...children) {
  const element = setAll(document.createElement(tag), attributes);
  element.append(...children);
  return element;
}

function makeSvg(tag, attributes, ...children) {
  const element = setAll(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes);
  element.append(...children);
  return element;
}

function header(scope, ...children) { return make("th", { scope }, ...children); }

function fill(table, head, rows) {
  table.replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

// Drawing can wait until there is somebody to see it.
function whenSeen(element, draw) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    draw();
  }, { rootMargin: "300px" });
  observer.observe(element);
}

/* Numbers */

function clamp(value, low, high) { return Math.min(Math.max(value, low), high); }

function plural(n, one) { return `${n} ${n === 1 ? one : `${one}s`}`; }

// So many significant digits; with an exponent below "least" and from a million on.
function significant(value, digits, least) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < least || size >= 1e6) return value.toExponential(digits - 1);
  return value.toFixed(clamp(digits - 1 - Math.floor(Math.log10(size)), 0, 9));
}

// Of fx, fy, cx, cy, k1, k2, p1 and p2.
const UNITS = ["px", "px", "px", "px", "", "", "", ""];
const withUnit = (name, k) => name + (UNITS[k] && ` (${UNITS[k]})`);

// Of n ascending numbers, "at" each place, the last place but one whose number is not above x; 0 if
// there is none.
function placeBelow(x, n, at) {
  let low = 0, high = n - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (at(middle) <= x) low = middle; else high = middle;
  }
  return low;
}

// Single precision in base64.
function decoded(text) {
  return new Float32Array(Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0)).buffer);
}

/* Addresses: what follows the # names what is looked at, so that it can be linked to */

const addressOf = (name) => `#${encodeURIComponent(name)}`;

// The name in the address; nothing if somebody has mistyped it.
function addressed() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

/* Sections that are gone through one by one */

// The address follows the focus.
function addressOnFocus(section, name) {
  section.addEventListener("focus", () => history.replaceState(null, "", addressOf(name)));
}

// The place of the section that has the focus, or holds what has it; -1 if none does.
function focusedOf(sections) {
  return sections.findIndex((section) => section.contains(document.activeElement));
}

function focusOn(section, block = "nearest") {
  section.focus();
  section.scrollIntoView({ block });
}

function focusNext(sections, step, block = "nearest") {
  if (!sections.length) return;
  focusOn(sections[clamp(focusedOf(sections) + step, 0, sections.length - 1)], block);
}

/* Keys */

// Whether a key is the browser's, or that of an element which has its own use for it.
function isTaken({ ctrlKey, metaKey, altKey, target }) {
  return ctrlKey || metaKey || altKey
    || target.matches("select, input:not([type=checkbox], [type=range])");
}

// The direction of an arrow key, [to the right, downwards]; undefined for all other keys.
function arrowOf(event) {
  return isTaken(event) ? undefined : { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
    ArrowDown: [0, 1] }[event.key];
}

// What keys do wherever the focus is, by the sign, or by "Shift+" and the place of the key where
// keyboards write different signs with it.
function onKeys(acts) {
  document.addEventListener("keydown", (event) => {
    const act = acts[event.key] ?? (event.shiftKey ? acts[`Shift+${event.code}`] : undefined);
    if (!act || isTaken(event)) return;
    act();
    event.preventDefault();
  });
}

/* Paper: nothing is folded away on it */

let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
});
