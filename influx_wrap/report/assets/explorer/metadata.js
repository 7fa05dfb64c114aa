// Lens metadata of a clip: the four kinds of files that are our own, InFlux's and ARRI's, by the same
// rules as influx_wrap/formats/lens_metadata.py, which reads those of other cameras, too. "readMetadata" returns {frame, lfl, fd}, arrays in the
// order of frames, NaN where the lens told nothing; a Fault says what is wrong in a sentence.

const INCH_M = 0.0254;
const NOT_TOLD = new Set(["", "--"]);
const INFINITE = new Set(["inf", "infinity", "infinite", "\u221e"]);
// The camera's -1 for infinity after it was taken for metres, millimetres, thousandths of an inch.
const MINUS_ONE_M = [-1, -1e-3, -1e-3 * INCH_M];
const UNITS_M = new Map([
  ...["m", "meter", "meters", "metre", "metres", "metric"].map((unit) => [unit, 1]),
  ...["mm", "millimeter", "millimeters"].map((unit) => [unit, 1e-3]),
  ...["ft", "foot", "feet", "imperial"].map((unit) => [unit, 12 * INCH_M]),
  ...["in", "inch", "inches"].map((unit) => [unit, INCH_M]),
]);
const [LEAST_FD_M, MOST_FD_M] = [1e-3, 1e7];
const ARRI_COLUMNS = ["Lens Focal Length", "Lens Focus Distance", "Lens Distance Unit"];
const OWN_HEADER = "frame,lfl_mm,fd_m";

class Fault extends Error {}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const quoted = (value) => (typeof value === "string" ? `'${value}'`
  : typeof value === "number" ? `${value}` : JSON.stringify(value) ?? "nothing");
const cutCells = (line, mark) => line.split(mark).map((text) => text.trim());

function readMetadata(name, bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Fault(`${name} is not a text file in UTF-8.`);
  }
  if (text.slice(0, 1000).trimStart().startsWith("{")) return fromJson(name, text);
  const lines = text.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/);
  if (lines.at(-1) === "") lines.pop();
  const columns = cutCells(lines[0] ?? "", "\t");
  if (ARRI_COLUMNS.slice(0, 2).every((column) => columns.includes(column))) {
    return fromMetaExtract(name, lines, columns);
  }
  if (cutCells(lines[0] ?? "", ",").join() !== OWN_HEADER) {
    throw new Fault(`${name} is no lens metadata that this page reads: give the ARRI Reference `
      + "Tool's JSON, ARRI Meta Extract's CSV, InFlux's per_frame_metadata.json, or a CSV file with "
      + `the header ${OWN_HEADER}. influx-calib annotate reads those of other cameras.`);
  }
  return fromOwnCsv(name, lines);
}

function fromJson(name, text) {
  const file = parsedJson(name, text);
  if ("frameBasedMetadata" in file) return fromReferenceTool(name, file.frameBasedMetadata);
  if ("frames" in file) return fromInflux(`${name}: frames`, file.frames);
  throw new Fault(`${name} is JSON, but neither of the ARRI Reference Tool (frameBasedMetadata) `
    + "nor InFlux's per-frame metadata (frames). influx-calib annotate reads more kinds.");
}

// Many programs write Infinity and NaN, which JSON does not have: outside of texts they become
// a number that overflows, and a text that nobody writes.
function parsedJson(name, text) {
  const notANumber = "\u0000NaN";
  let revive;
  if (/\b(?:NaN|Infinity)\b/.test(text)) {
    text = text.replace(/"(?:[^"\\]|\\.)*"|\bInfinity\b|\bNaN\b/g, (token) => {
      if (token === "NaN") revive = (_, value) => (value === notANumber ? NaN : value);
      return { Infinity: "1e999", NaN: JSON.stringify(notANumber) }[token] ?? token;
    });
  }
  try {
    return JSON.parse(text, revive);
  } catch (error) {
    throw new Fault(`${name}: this is not JSON. Is the file complete?`, { cause: error });
  }
}

function frameNumber(where, text) {
  if (!/^[0-9]{1,18}$/.test(text)) {
    throw new Fault(`${where}: frame '${text}' is not a number of a frame, counted from 0.`);
  }
  return Number(text);
}

// From [lfl, fd] by frame, in any order.
function inOrder(rows) {
  const frame = [...rows.keys()].sort((a, b) => a - b);
  return {
    frame: Float64Array.from(frame),
    lfl: Float64Array.from(frame, (number) => rows.get(number)[0]),
    fd: Float64Array.from(frame, (number) => rows.get(number)[1]),
  };
}

/* InFlux's per_frame_metadata.json */

function fromInflux(where, frames) {
  if (!isObject(frames)) throw new Fault(`${where} must be a mapping.`);
  const rows = new Map();
  for (const [key, entry] of Object.entries(frames)) {
    const number = frameNumber(where, key);
    if (rows.has(number)) throw new Fault(`${where}: ${key} is a frame that has come already.`);
    if (!isObject(entry)) throw new Fault(`${where}: ${key} must be a mapping.`);
    rows.set(number, influxSetting(`${where}: ${key}`, entry));
  }
  if (rows.size === 0) throw new Fault(`${where} has no frame.`);
  return inOrder(rows);
}

function influxSetting(where, entry) {
  return ["focal_length_mm", "focus_distance_m"].map((key, k) => {
    let value = entry[key] ?? NaN;
    if (value === "inf") value = Infinity;
    if (typeof value !== "number") {
      throw new Fault(`${where}: ${key} must be a number, got ${quoted(value)}.`);
    }
    const isMinusOne = (one) => Math.abs(value - one) <= 1e-9 * Math.max(-value, -one);
    if (k === 1 && value < 0 && MINUS_ONE_M.some(isMinusOne)) value = Infinity;
    if (value <= 0 || (k === 0 && value === Infinity)) {
      throw new Fault(`${where}: ${key} must be above 0, and a focal length finite.`);
    }
    return value;
  });
}

/* The ARRI Reference Tool's JSON: frames are counted from the first that is listed */

function fromReferenceTool(name, metadata) {
  const where = `${name}: frameBasedMetadata`;
  if (!isObject(metadata)) throw new Fault(`${where} must be a mapping.`);
  if (!Array.isArray(metadata.frames)) throw new Fault(`${where}: frames must be a list.`);
  const rows = new Map();
  let first = 0;
  for (const [k, entry] of metadata.frames.entries()) {
    const at = `${where}: frames[${k}]`;
    if (!isObject(entry)) throw new Fault(`${at} must be a mapping.`);
    const number = arriNumber(at, entry);
    if (k === 0) first = number;
    if (number < first || rows.has(number - first)) {
      throw new Fault(`${at}: frameId ${number} comes twice, or before that of the first.`);
    }
    rows.set(number - first, arriSetting(at, entry));
  }
  if (![...rows.values()].some(([lfl, fd]) => !Number.isNaN(lfl) && !Number.isNaN(fd))) {
    throw new Fault(`${name} has no frame whose set 'Lens State' tells focal length and focus `
      + "distance. Did the lens send data to the camera?");
  }
  return inOrder(rows);
}

function arriNumber(where, entry) {
  const key = "frameId" in entry ? "frameId" : "frameNo";
  const value = entry[key];
  if (typeof value === "string" && /^\s*[0-9]+\s*$/.test(value)) return Number(value);
  if (!Number.isInteger(value) || value < 0) {
    throw new Fault(`${where}: ${key} must be a whole number from 0, got ${quoted(value)}.`);
  }
  return value;
}

function arriSetting(where, entry) {
  const sets = entry.frameBasedMetadataSets;
  if (!Array.isArray(sets)) throw new Fault(`${where}: frameBasedMetadataSets must be a list.`);
  const k = sets.findIndex((set) => isObject(set) && set.metadataSetName === "Lens State");
  const state = sets[k]?.metadataSetPayload ?? null;
  if (state === null) return [NaN, NaN];
  const at = `${where}: frameBasedMetadataSets[${k}]: metadataSetPayload`;
  if (!isObject(state)) throw new Fault(`${at} must be a mapping.`);
  const told = (key) => {
    const value = state[key] ?? null;
    if (value === null) return NaN;
    if (!Number.isFinite(value)) {
      throw new Fault(`${at}: ${key} must be a finite number, got ${quoted(value)}.`);
    }
    if (value < 0 && value !== -1) {
      throw new Fault(`${at}: ${key} must be positive, or -1 for infinity, got ${value}.`);
    }
    return value === -1 ? Infinity : value || NaN;
  };
  const lfl = 1e-3 * told("lensFocalLength");
  let fd = 1e-3 * told("lensFocusDistanceMetric");
  if (Number.isNaN(fd)) fd = 1e-3 * INCH_M * told("lensFocusDistanceImperial");
  return [lfl === Infinity ? NaN : lfl, fd];
}

/* ARRI Meta Extract's CSV, with tabs between columns */

function fromMetaExtract(name, lines, columns) {
  if (!columns.includes(ARRI_COLUMNS[2])) {
    throw new Fault(`${name}, line 1: the column '${ARRI_COLUMNS[2]}' is missing, without which `
      + `nobody knows what '${ARRI_COLUMNS[1]}' means. Export it too.`);
  }
  const wanted = ARRI_COLUMNS.map((column) => columns.indexOf(column));
  const rows = new Map(), place = columns.indexOf("Index"), index = [];
  for (const [k, line] of lines.entries()) {
    if (k === 0 || !line.trim()) continue;
    const where = `${name}, line ${k + 1}`, values = cutCells(line, "\t");
    index.push(/^[0-9]{1,15}$/.test(values[place]) ? Number(values[place]) : NaN);
    const last = Math.max(...wanted) + 1;
    if (values.length < last || (values.length === last && columns.length > last)) {
      throw new Fault(`${where}: ${values.length} columns instead of ${columns.length}. Is the `
        + "file complete?");
    }
    const [lfl, fd, unit] = wanted.map((place) => values[place]);
    rows.set(rows.size, [extractedLfl(where, lfl), extractedFd(where, fd, unit)]);
  }
  if (rows.size === 0) {
    throw new Fault(`${name} has no frame: only the line with the names of the columns.`);
  }
  // Frames are numbered by "Index" if it counts up, else by line.
  const counts = index.every((number, k) => number > (k ? index[k - 1] : -1));
  return inOrder(!counts ? rows
    : new Map([...rows].map(([k, setting]) => [index[k] - index[0], setting])));
}

function extractedLfl(where, text) {
  const value = extracted(where, ARRI_COLUMNS[0], text);
  return value === Infinity ? NaN : value;
}

function extractedFd(where, text, unit) {
  const value = extracted(where, ARRI_COLUMNS[1], text);
  if (!Number.isFinite(value)) return value;
  const metres = UNITS_M.get(unit.toLowerCase());
  if (metres === undefined) {
    throw new Fault(`${where}: ${ARRI_COLUMNS[2]} '${unit}' is not known; known: `
      + `${[...UNITS_M.keys()].join(", ")}.`);
  }
  const fd = value * metres;
  if (fd < LEAST_FD_M || fd > MOST_FD_M) {
    throw new Fault(`${where}: ${ARRI_COLUMNS[1]} '${text}' is ${fd} m, which is no focus distance. `
      + "Is its unit another one?");
  }
  return fd;
}

function extracted(where, name, text) {
  if (NOT_TOLD.has(text)) return NaN;
  if (INFINITE.has(text.toLowerCase())) return Infinity;
  const value = parsedNumber(text);
  if (value === null) throw new Fault(`${where}: ${name} '${text}' is not a number.`);
  if (Number.isNaN(value) || (value < 0 && value !== -1)) {
    throw new Fault(`${where}: ${name} must be positive, or -1 for infinity, got ${text}.`);
  }
  return value === -1 ? Infinity : value || NaN;
}

// A number as Python's float reads it; null for anything else.
function parsedNumber(text) {
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text)) return Number(text);
  const word = /^([+-]?)(?:(inf|infinity)|nan)$/i.exec(text);
  if (!word) return null;
  return word[2] ? (word[1] === "-" ? -Infinity : Infinity) : NaN;
}

/* Our own CSV */

function fromOwnCsv(name, lines) {
  const rows = new Map();
  for (const [k, line] of lines.entries()) {
    if (k === 0 || !line.trim()) continue;
    const where = `${name}, line ${k + 1}`, values = cutCells(line, ",");
    if (values.length !== 3) {
      throw new Fault(`${where}: ${values.length} values instead of 3 (${OWN_HEADER}).`);
    }
    const frame = frameNumber(where, values[0]);
    if (rows.has(frame)) throw new Fault(`${where}: frame ${frame} has had a line already.`);
    const lfl = ownValue(where, "lfl_mm", values[1]), fd = ownValue(where, "fd_m", values[2]);
    if (lfl === Infinity) throw new Fault(`${where}: lfl_mm must be finite, got ${values[1]}.`);
    rows.set(frame, [lfl, fd]);
  }
  if (rows.size === 0) {
    throw new Fault(`${name} has no frame: it needs a line ${OWN_HEADER} for each.`);
  }
  return inOrder(rows);
}

function ownValue(where, name, text) {
  if (NOT_TOLD.has(text)) return NaN;
  const value = parsedNumber(text);
  if (value === null) throw new Fault(`${where}: ${name} '${text}' is not a number.`);
  if (!(value > 0)) throw new Fault(`${where}: ${name} must be above 0, got ${text}.`);
  return value;
}
