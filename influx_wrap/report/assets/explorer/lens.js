// The lens explorer: the lens, what is looked at, and how settings become text and places.

const NAMES = data.intrinsics, DIGITS = [2, 2, 2, 2, 6, 6, 7, 7];
// JSON has no infinity.
for (const distances of [data, ...data.proposals]) {
  distances.fd = Array.isArray(distances.fd) ? distances.fd.map((fd) => fd ?? Infinity)
    : distances.fd ?? Infinity;
}
const smooth = data.smooth && makeSmooth(data.smooth, data);
const regionLookups = data.schemes.map((scheme) => makeLookup(scheme, data));
const lookups = smooth ? [smooth, ...regionLookups] : regionLookups;
const lookupOf = (name) => lookups.find((lookup) => lookup.name === name);
const { columns: { lfl: columns } } = regionLookups[0];
const isColumn = columns.length === 1;
const experiments = data.names.map((name, row) => ({
  name, row, lfl: data.lfl[row], fd: data.fd[row], target: data.isDrone[row] ? "drone" : "board",
}));
const wordOf = ["Interpolated", "Extrapolated", "Outside", "No answer"];

// What is looked at. "words" replace an answer where a clip's frame has no setting.
const state = {
  lfl: NaN, fd: NaN, scheme: data.default, show: smooth ? "corner-0" : "value-0", axis: "inverse", pinned: false,
  words: null,
};

/* Numbers and settings as text */

const fdText = (fd) => (fd === Infinity ? "inf" : String(fd));
const metres = (fd, digits = 4) => (fd === Infinity ? "\u221e" : `${short(fd, digits)} m`);
const short = (value, digits = 4) => String(Number(value.toPrecision(digits)));
const small = (value, digits = 2) => significant(value, digits, 1e-4).replace("e+", "e");

/* The plane: u grows with focus distance, v with focal length */

const planeSize = { columns: 140, rows: 96 };
const nearest = Math.min(...data.fd), farthest = Math.max(...data.fd.filter(Number.isFinite));
const leastLfl = Math.min(...data.lfl), mostLfl = Math.max(...data.lfl);
const axes = {
  inverse: {
    u: (fd) => -1 / fd, fd: (u) => (u >= 0 ? Infinity : -1 / u),
    range: [-1.13 / nearest, 0.035 / nearest], end: 0, label: "focus distance FD (1 / FD scale)",
  },
  log: {
    u: (fd) => (fd === Infinity ? Math.log10(4 * farthest) : Math.log10(fd)), fd: (u) => 10 ** u,
    range: [Math.log10(nearest / 1.25), Math.log10(4 * farthest)],
    end: Math.log10(4 * farthest), label: "focus distance FD (logarithmic)",
  },
};
const vPad = isColumn ? 0.1 : 0.035 * Math.log(mostLfl / leastLfl);
const vRange = [Math.log(leastLfl) - vPad, Math.log(mostLfl) + vPad];
const axis = () => axes[state.axis];
const toPlane = (lfl, fd) => [axis().u(fd), Math.log(lfl)];

// A table of one focal length is a strip: every height of it is that focal length.
function fromPlane(u, v) {
  const lfl = isColumn ? columns[0] : Number(Math.exp(v).toPrecision(5));
  const isInfinite = state.axis === "inverse" && u > -0.004 / nearest;
  return [lfl, isInfinite ? Infinity : Number(axis().fd(u).toPrecision(5))];
}

// Of labelled places those that are not too near to each other; the last always counts.
function apart(ticks, [from, to], most) {
  const kept = [];
  for (const tick of [...ticks].reverse()) {
    if (tick[0] < from || tick[0] > to) continue;
    if (!kept.length || kept.at(-1)[0] - tick[0] > (to - from) / most) kept.push(tick);
  }
  return kept.reverse();
}

function planeTicks(along = axis()) {
  const nice = [-2, -1, 0, 1, 2, 3].flatMap((power) => [1, 1.5, 2, 3, 5, 7]
    .map((first) => Number(`${first}e${power}`)));
  const fds = along === axes.inverse ? [...nice, Infinity] : nice;
  const most = (byId("plane").clientWidth || 600) / 52;
  return {
    x: apart(fds.map((fd) => [along.u(fd), fd === Infinity ? "\u221e" : `${fd} m`]), along.range,
      most),
    y: apart(columns.map((lfl) => [Math.log(lfl), short(lfl)]), vRange, 18),
  };
}
