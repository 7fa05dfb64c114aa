// A lens's table asked: the same numbers, by the same steps, as influx_wrap/lut gives them.
// Nothing here knows of the page. A "lookup" is a scheme's part of the page's data: regions between
// experiments, or the smooth lens.

const STATUS = { INTERPOLATED: 0, EXTRAPOLATED: 1, LFL_OUTSIDE: 2, UNUSABLE: 3 };
const STATUS_NAMES = ["interpolated", "extrapolated", "lfl_outside", "unusable"];
const RIM = 1e-6, LFL_TOLERANCE = 1e-6, BOX_MARGIN = 1e-6;

// A scheme with what its regions need to be searched; table: {lfl, pixelUm} of the whole lens.
function makeLookup(scheme, table) {
  const { places, regions } = scheme;
  // Experiments at infinity, which come last, have no part in regions.
  const own = table.lfl.slice(0, places.length);
  const lookup = {
    ...scheme, pixelUm: table.pixelUm, lflRange: [Math.min(...own), Math.max(...own)],
    xRange: [Math.min(...places.map(([x]) => x)), Math.max(...places.map(([x]) => x))],
    isDisparity: scheme.name !== "paper", isThinLens: scheme.name === "thin-lens",
  };
  const least = [0, 1].map((k) => Math.min(...places.map((place) => place[k])));
  const most = [0, 1].map((k) => Math.max(...places.map((place) => place[k])));
  lookup.corners = regions.map((corners) => corners.filter((row) => row >= 0)
    .map((row) => places[row]));
  // A little wider, so that rounding hides nobody.
  lookup.boxes = lookup.corners.map((own) => [0, 1].map((k) => {
    const values = own.map((place) => place[k]), margin = BOX_MARGIN * (most[k] - least[k]);
    return [Math.min(...values) - margin, Math.max(...values) + margin];
  }));
  // Not known is not a number, lest it count as zero.
  lookup.curvature = scheme.curvature.map((axes) => axes.map((bends) => bends
    .map((bend) => bend ?? NaN)));
  lookup.scatter = scheme.columns.lfl.map((lfl, k) => [lfl, scheme.columns.scatter[k]]);
  return lookup;
}

const toY = (lookup, fd) => (lookup.isDisparity ? 1 / fd : fd);
const toFd = toY;

function cflMm(effective, fd) {
  return 2 * effective / (1 + Math.sqrt(1 - 4e-3 * effective / fd));
}

// What is at x on the line through points [[x, y], ...]; level beyond its ends.
function interpolate(x, points) {
  const last = points.length - 1;
  if (x < points[0][0]) return points[0][1];
  if (x >= points[last][0]) return points[last][1];
  const low = placeBelow(x, points.length, (k) => points[k][0]);
  const [x0, y0] = points[low], [x1, y1] = points[low + 1];
  return x === x0 ? y0 : (y1 - y0) / (x1 - x0) * (x - x0) + y0;
}

// Least and greatest y of the table at a focal length.
function rangeOfY(lookup, x) {
  if (lookup.isSmooth) return hullRange(lookup, x);
  return [interpolate(x, lookup.outline[0]), interpolate(x, lookup.outline[1])];
}

// Weights of the ends of a piece of a line, on which a place is; returns the lesser.
function onLine([a, b], x, y, weights) {
  const axis = a[0] !== b[0] ? 0 : 1, share = ([x, y][axis] - a[axis]) / (b[axis] - a[axis]);
  weights[0] = 1 - share; weights[1] = share; weights[2] = 0; weights[3] = 0;
  return Math.min(share, 1 - share);
}

// Barycentric weights of a triangle's corners; returns the least.
function inTriangle([a, b, c], x, y, weights) {
  const ux = b[0] - a[0], uy = b[1] - a[1], vx = c[0] - a[0], vy = c[1] - a[1];
  const area = ux * vy - uy * vx;
  const one = ((x - a[0]) * vy - (y - a[1]) * vx) / area;
  const two = (ux * (y - a[1]) - uy * (x - a[0])) / area;
  weights[0] = 1 - one - two; weights[1] = one; weights[2] = two; weights[3] = 0;
  return Math.min(1 - one - two, one, two);
}

// Bilinear weights of a quadrilateral's corners; returns the least of the factors they are made
// of. The place is a + s e + t f + s t g; without s, that is a quadratic equation in t.
function inQuad([a, b, c, d], x, y, weights) {
  const ex = b[0] - a[0], ey = b[1] - a[1], fx = d[0] - a[0], fy = d[1] - a[1];
  const gx = c[0] - b[0] - fx, gy = c[1] - b[1] - fy, hx = x - a[0], hy = y - a[1];
  const k2 = gx * fy - gy * fx, k1 = ex * fy - ey * fx + hx * gy - hy * gx, k0 = hx * ey - hy * ex;
  const root = Math.sqrt(Math.max(0, k1 * k1 - 4 * k2 * k0));
  const q = -0.5 * (k1 + (k1 >= 0 ? root : -root));
  let t = q !== 0 ? k0 / q : 0;
  if (k2 !== 0 && !(t >= -0.5 && t <= 1.5)) t = q / k2;
  const dx = ex + t * gx, dy = ey + t * gy;
  const s = Math.abs(dx) > Math.abs(dy) ? (hx - t * fx) / dx : (hy - t * fy) / dy;
  weights[0] = (1 - s) * (1 - t); weights[1] = s * (1 - t);
  weights[2] = s * t; weights[3] = (1 - s) * t;
  return Math.min(s, t, 1 - s, 1 - t);
}

function onPlace(corners, x, y, weights) {
  weights[0] = 1; weights[1] = 0; weights[2] = 0; weights[3] = 0;
  return 0;
}

const within = [null, onPlace, onLine, inTriangle, inQuad];

// The region that holds a place inside the table, and its corners' weights; null if none does.
function locate(lookup, x, y) {
  const trial = [0, 0, 0, 0];
  let best = -RIM, found = null;
  for (const [region, corners] of lookup.corners.entries()) {
    const [[left, right], [bottom, top]] = lookup.boxes[region];
    if (!(x >= left && x <= right && y >= bottom && y <= top)) continue;
    const least = within[corners.length](corners, x, y, trial);
    if (least > best) {
      best = least;
      found = { region, weights: trial.slice() };
      if (least >= 0) break;
    }
  }
  return found;
}

function blend(rows, vertices, weights) {
  const result = new Array(rows[0].length).fill(0);
  for (let k = 0; k < 4 && vertices[k] >= 0; k += 1) {
    const row = rows[vertices[k]];
    for (let c = 0; c < result.length; c += 1) result[c] += weights[k] * row[c];
  }
  return result;
}

// Intrinsics from what was blended at a focus distance.
function toIntrinsics(lookup, blended, fd) {
  if (!lookup.isThinLens) return blended;
  const result = [...blended];
  for (const k of [0, 1]) result[k] = cflMm(blended[k], fd) / (1e-3 * lookup.pixelUm[k]);
  return result;
}

// Derivative of the first two intrinsics by what was blended; the others' is 1.
function slopeOf(lookup, blended, fd) {
  if (!lookup.isThinLens) return [1, 1];
  return [0, 1].map((k) => {
    const cfl = cflMm(blended[k], fd);
    const beyond = fd === Infinity ? Infinity : 1e3 * fd - cfl;
    const inverse = (blended[k] / cfl) ** 2 - (blended[k] / beyond) ** 2;
    return 1 / inverse / (1e-3 * lookup.pixelUm[k]);
  });
}

// Camera focal length of thin lenses, one for each of the two neighbouring columns.
function extrapolatedCflMm(lookup, lfl, fd) {
  const { lfl: columns, effective } = lookup.columns;
  let right = columns.findIndex((column) => column >= lfl);
  if (right < 0) right = columns.length - 1;
  right = clamp(right, columns.length > 1 ? 1 : 0, columns.length - 1);
  const left = Math.max(right - 1, 0), width = columns[right] - columns[left];
  const share = width > 0 ? clamp((lfl - columns[left]) / width, 0, 1) : 0;
  if (lookup.isThinLens) {
    return cflMm((1 - share) * effective[left] + share * effective[right], fd);
  }
  return (1 - share) * cflMm(effective[left], fd) + share * cflMm(effective[right], fd);
}

// What the table says at a setting: {status, intrinsics, vertices, weights}; without an answer
// intrinsics are null.
function query(lookup, lfl, fd) {
  if (lookup.isSmooth) return querySmooth(lookup, lfl, fd);
  const nothing = (status) => ({ status, intrinsics: null, vertices: [], weights: [], lfl, fd });
  const [least, most] = lookup.lflRange;
  if (!(lfl > 0 && Number.isFinite(lfl) && fd > 0)) return nothing(STATUS.UNUSABLE);
  if (lfl < least * (1 - LFL_TOLERANCE) || lfl > most * (1 + LFL_TOLERANCE)) {
    return nothing(STATUS.LFL_OUTSIDE);
  }
  const x = clamp(lfl, ...lookup.xRange), y = toY(lookup, fd);
  const [low, high] = rangeOfY(lookup, x);
  const slack = 1e-12 * (Math.abs(low) + Math.abs(high));
  const inside = y >= low - slack && y <= high + slack;
  const nearest = clamp(y, low, high);
  const found = locate(lookup, x, nearest);
  if (found === null) return nothing(STATUS.UNUSABLE);
  const corners = lookup.regions[found.region];
  const blended = blend(lookup.blended, corners, found.weights);
  const intrinsics = toIntrinsics(lookup, blended, inside ? fd : toFd(lookup, nearest));
  if (!inside) {
    const focal = extrapolatedCflMm(lookup, x, fd);
    if (Number.isNaN(focal)) return nothing(STATUS.UNUSABLE);
    for (const k of [0, 1]) intrinsics[k] = focal / (1e-3 * lookup.pixelUm[k]);
  }
  const n = lookup.corners[found.region].length;
  return {
    status: inside ? STATUS.INTERPOLATED : STATUS.EXTRAPOLATED, intrinsics, lfl, fd,
    vertices: corners.slice(0, n), weights: found.weights.slice(0, n),
  };
}

// Standard deviations of an answer: what its experiments measured, how far the lens may bend
// between them, and beyond them how much a column's own thin lens scatters. Null without an
// answer; NaN, which is not known, if one of its experiments has no covariance.
function sigmaOf(lookup, answer) {
  const { intrinsics, vertices, weights } = answer;
  if (!intrinsics) return null;
  if (lookup.isSmooth) return smoothSigma(lookup, answer);
  const lacks = (row, k) => Math.abs(weights[k]) > 1e-9 && lookup.variance[row].includes(null);
  if (vertices.some(lacks)) return new Array(intrinsics.length).fill(NaN);
  const places = vertices.map((row) => lookup.places[row]), n = vertices.length;
  let x = 0, y = 0, reachX = 0, reachY = 0;
  for (let k = 0; k < n; k += 1) {
    x += weights[k] * places[k][0];
    y += weights[k] * places[k][1];
  }
  for (let k = 0; k < n; k += 1) {
    reachX += weights[k] * (places[k][0] - x) ** 2;
    reachY += weights[k] * (places[k][1] - y) ** 2;
  }
  const beyond = answer.status === STATUS.EXTRAPOLATED;
  const slope = slopeOf(lookup, blend(lookup.blended, vertices, weights),
    beyond ? toFd(lookup, y) : answer.fd);
  const result = new Array(intrinsics.length);
  for (let c = 0; c < result.length; c += 1) {
    let measured = 0, bendX = 0, bendY = 0;
    for (let k = 0; k < n; k += 1) {
      const row = vertices[k];
      measured += weights[k] * weights[k] * lookup.variance[row][c];
      bendX += weights[k] * lookup.curvature[row][0][c];
      bendY += weights[k] * lookup.curvature[row][1][c];
    }
    const bent = (0.5 * reachX) ** 2 * bendX + (0.5 * reachY) ** 2 * bendY;
    result[c] = Math.abs(c < 2 ? slope[c] : 1) * Math.sqrt(measured + bent);
  }
  if (beyond) {
    const relative = interpolate(answer.lfl, lookup.scatter);
    for (let k = 0; k < 2; k += 1) result[k] = Math.hypot(result[k], relative * intrinsics[k]);
  }
  return result;
}

/* Brown and Conrady's model, as influx_wrap/model/intrinsics.py has it */

// Smallest normalised radius at which r (1 + k1 r^2 + k2 r^4) stops growing.
function foldRadius(k1, k2) {
  const root = Math.sqrt(9 * k1 * k1 - 20 * k2);
  const candidates = [2 / (-3 * k1 + root), 2 / (-3 * k1 - root)]
    .filter((square) => square > 0 && square < 1e12);
  return candidates.length ? Math.sqrt(Math.min(...candidates)) : Infinity;
}

function distort([, , , , k1, k2, p1, p2], a, b) {
  const r2 = a * a + b * b, radial = 1 + r2 * (k1 + k2 * r2), slope = 2 * k1 + 4 * k2 * r2;
  return {
    x: a * radial + 2 * p1 * a * b + p2 * (r2 + 2 * a * a),
    y: b * radial + p1 * (r2 + 2 * b * b) + 2 * p2 * a * b,
    xa: radial + a * a * slope + 2 * p1 * b + 6 * p2 * a,
    xb: a * b * slope + 2 * p1 * a + 2 * p2 * b,
    yb: radial + b * b * slope + 6 * p1 * b + 2 * p2 * a,
  };
}

// The pixel of a direction (a, b, 1); null from the fold outwards.
function project(theta, a, b) {
  const { x, y, xa, xb, yb } = distort(theta, a, b), fold = foldRadius(theta[4], theta[5]);
  if (!(a * a + b * b < fold * fold && xa * yb - xb * xb > 0)) return null;
  return [theta[0] * x + theta[2], theta[1] * y + theta[3]];
}

// The direction (a, b, 1) of a pixel; null if none inside the fold reaches it. The radial part
// is bracketed, so that it stays on the branch with the axis; the rest is a few steps of Newton's.
function unproject(theta, u, v) {
  const xd = (u - theta[2]) / theta[0], yd = (v - theta[3]) / theta[1];
  const [, , , , k1, k2] = theta, distorted = Math.hypot(xd, yd), fold = foldRadius(k1, k2);
  if (distorted === 0) return [0, 0];
  const forward = (r) => r * (1 + r * r * (k1 + k2 * r * r));
  let low = 0, high = fold;
  if (high === Infinity) for (high = distorted; forward(high) < distorted;) high *= 2;
  for (let k = 0; k < 50; k += 1) {
    const middle = 0.5 * (low + high);
    if (forward(middle) < distorted) low = middle; else high = middle;
  }
  let a = xd * low / distorted, b = yd * low / distorted;
  for (let k = 0; k < 20; k += 1) {
    const at = distort(theta, a, b), ex = at.x - xd, ey = at.y - yd;
    if (Math.hypot(ex, ey) <= 1e-14 * (1 + distorted)) break;
    const determinant = at.xa * at.yb - at.xb * at.xb;
    a -= (at.yb * ex - at.xb * ey) / determinant;
    b -= (at.xa * ey - at.xb * ex) / determinant;
  }
  const at = distort(theta, a, b);
  const reached = Math.hypot(at.x - xd, at.y - yd) < 1e-9 * (1 + distorted);
  const valid = a * a + b * b < fold * fold && at.xa * at.yb - at.xb * at.xb > 0;
  return reached && valid ? [a, b] : null;
}

// Angle in degrees between the directions of two pixels; null if one has none.
function angleBetween(theta, from, to) {
  const [one, other] = [unproject(theta, ...from), unproject(theta, ...to)];
  if (!one || !other) return null;
  const [[a, b], [c, d]] = [one, other];
  const across = Math.hypot(b - d, c - a, a * d - b * c);
  return Math.atan2(across, a * c + b * d + 1) * 180 / Math.PI;
}

// Degrees between the rays through the middles of the picture's left and right rims, of its top
// and bottom rims, and through opposite corners (the wider pair). Rims are half a pixel outside
// the outermost pixels' centres.
function fieldOfView(theta, [width, height]) {
  const left = -0.5, right = width - 0.5, top = -0.5, bottom = height - 0.5;
  const x = (width - 1) / 2, y = (height - 1) / 2;
  const falling = angleBetween(theta, [left, top], [right, bottom]);
  const rising = angleBetween(theta, [left, bottom], [right, top]);
  return {
    horizontal: angleBetween(theta, [left, y], [right, y]),
    vertical: angleBetween(theta, [x, top], [x, bottom]),
    diagonal: falling === null || rising === null ? null : Math.max(falling, rising),
  };
}

// How far distortion moves what is seen within the picture, at most, in px, from where a camera
// without it shows the same; and whether some of the picture is beyond the fold.
function displacement(theta, [width, height], steps) {
  let largest = 0, folds = false;
  for (let i = 0; i <= steps; i += 1) {
    for (let j = 0; j <= steps; j += 1) {
      const u = -0.5 + width * i / steps, v = -0.5 + height * j / steps;
      const direction = unproject(theta, u, v);
      if (direction === null) { folds = true; continue; }
      const [a, b] = direction;
      largest = Math.max(largest,
        Math.hypot(theta[0] * a + theta[2] - u, theta[1] * b + theta[3] - v));
    }
  }
  return { largest, folds };
}
