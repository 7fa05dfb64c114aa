// The smooth lens asked: outputs and their covariance, interpolated between the nodes of a grid, as
// influx_wrap/lut/smooth has them. Nothing here knows of the page.

const GRID_POINTS = 6, OUTPUTS = 8, TRIANGLE = 36;

// Numbers in double precision and base64.
function decodedDouble(text) {
  return new Float64Array(Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0)).buffer);
}

// The page's part of a smooth lens, ready to answer; table: {imageSize, pixelUm} of the camera.
function makeSmooth(smooth, table) {
  const [width, height] = table.imageSize, [across, down] = table.pixelUm;
  return {
    ...smooth, isSmooth: true, isDisparity: true, lflRange: smooth.lfl,
    means: decodedDouble(smooth.means), covariances: decoded(smooth.covariances),
    corner: Math.hypot(width, height) / 2, centre: [(width - 1) / 2, (height - 1) / 2],
    pitchMm: 1e-3 * Math.sqrt(across * down), logAspect: Math.log(across / down),
  };
}

// Weights of the nodes around a place, of the polynomial through them, and the first of the nodes.
// Places are in units of the nodes' distance.
function lagrange(place, count) {
  const first = clamp(Math.floor(place) - (GRID_POINTS / 2 - 1), 0, count - GRID_POINTS);
  const weights = new Float64Array(GRID_POINTS).fill(1);
  for (let i = 0; i < GRID_POINTS; i += 1) {
    for (let j = 0; j < GRID_POINTS; j += 1) {
      if (j !== i) weights[i] *= (place - first - j) / (i - j);
    }
  }
  return { first, weights };
}

// Outputs (8,) and the lower triangle (36,) of their covariance.
function outputsAt(smooth, lfl, fd) {
  const u = Math.log(lfl / smooth.lfl[0]) / smooth.width;
  const v = (1 - smooth.offset) / (fd / smooth.nearest - smooth.offset);
  const [rows, columns] = smooth.size;
  const along = lagrange((u - smooth.low[0]) / smooth.step[0], rows);
  const across = lagrange((v - smooth.low[1]) / smooth.step[1], columns);
  const mean = new Float64Array(OUTPUTS), spread = new Float64Array(TRIANGLE);
  for (let i = 0; i < GRID_POINTS; i += 1) {
    for (let j = 0; j < GRID_POINTS; j += 1) {
      const weight = along.weights[i] * across.weights[j];
      const node = (along.first + i) * columns + across.first + j;
      for (let c = 0; c < OUTPUTS; c += 1) mean[c] += weight * smooth.means[node * OUTPUTS + c];
      for (let c = 0; c < TRIANGLE; c += 1) {
        spread[c] += weight * smooth.covariances[node * TRIANGLE + c];
      }
    }
  }
  return { mean, spread };
}

function smoothIntrinsics(smooth, mean, lfl) {
  const g = mean.map((output, k) => output * smooth.scale[k]);
  const focal = lfl / (smooth.pitchMm * (1 + g[0])), half = 0.5 * (g[1] + smooth.logAspect);
  const { corner, centre } = smooth, rho = corner / focal;
  return [focal * Math.exp(-half), focal * Math.exp(half), g[2] + centre[0], g[3] + centre[1],
    (g[4] - g[5]) / (corner * rho ** 2), g[5] / (corner * rho ** 4), g[6] / (3 * corner * rho),
    g[7] / (3 * corner * rho)];
}

// Rows of the derivative of intrinsics by outputs, each as [output, slope] pairs.
function smoothSlope(smooth, theta, lfl) {
  const [fx, fy, , , k1, k2, p1, p2] = theta, { corner, scale, pitchMm } = smooth;
  const focal = Math.sqrt(fx * fy), rho = corner / focal, inverse = focal * pitchMm / lfl;
  const second = 1 / (corner * rho ** 2), fourth = 1 / (corner * rho ** 4);
  const tangential = 1 / (3 * corner * rho);
  return [
    [[0, -fx * inverse], [1, -fx / 2]], [[0, -fy * inverse], [1, fy / 2]], [[2, 1]], [[3, 1]],
    [[0, -2 * k1 * inverse], [4, second], [5, -second]], [[0, -4 * k2 * inverse], [5, fourth]],
    [[0, -p1 * inverse], [6, tangential]], [[0, -p2 * inverse], [7, tangential]],
  ].map((row) => row.map(([output, slope]) => [output, slope * scale[output]]));
}

// Standard deviation of a sum of outputs with these slopes.
function deviation(spread, slopes) {
  let variance = 0;
  for (const [i, a] of slopes) {
    for (const [j, b] of slopes) {
      const [high, low] = i > j ? [i, j] : [j, i];
      variance += a * b * spread[high * (high + 1) / 2 + low];
    }
  }
  return Math.sqrt(variance);
}

function smoothStatus(smooth, lfl, fd) {
  const [least, most] = smooth.lfl;
  if (!(lfl > 0 && Number.isFinite(lfl) && fd >= smooth.leastShare * smooth.nearest)) {
    return STATUS.UNUSABLE;
  }
  if (lfl < least * (1 - smooth.margin) || lfl > most * (1 + smooth.margin)) {
    return STATUS.LFL_OUTSIDE;
  }
  const { low, scale, sides } = smooth.hull;
  const x = (Math.log(lfl) - low[0]) / scale[0], y = (1 / fd - low[1]) / scale[1];
  return sides.every(([a, b, c]) => a * x + b * y + c <= 0) ? STATUS.INTERPOLATED
    : STATUS.EXTRAPOLATED;
}

// Least and greatest 1 / FD that the experiments surround at a focal length.
function hullRange(smooth, lfl) {
  const { low, scale, sides } = smooth.hull;
  const x = (Math.log(clamp(lfl, ...smooth.lfl)) - low[0]) / scale[0];
  let [least, most] = [-Infinity, Infinity];
  for (const [a, b, c] of sides) {
    if (Math.abs(b) < 1e-12) continue;
    const bound = -(a * x + c) / b;
    if (b > 0) most = Math.min(most, bound); else least = Math.max(least, bound);
  }
  return [least, most].map((y) => Math.max(low[1] + scale[1] * y, 0));
}

function querySmooth(smooth, lfl, fd) {
  const status = smoothStatus(smooth, lfl, fd);
  const answer = { status, intrinsics: null, vertices: [], weights: [], lfl, fd };
  if (status > STATUS.EXTRAPOLATED) return answer;
  const { mean, spread } = outputsAt(smooth, lfl, fd);
  return { ...answer, intrinsics: smoothIntrinsics(smooth, mean, lfl), mean, spread };
}

function smoothSigma(smooth, { intrinsics, spread, lfl }) {
  return smoothSlope(smooth, intrinsics, lfl).map((row) => deviation(spread, row));
}

// Sigma in px of where the picture's corner is seen, by focal length and radial distortion; null
// without an answer, and of schemes that do not know how their errors go together. In a direction
// that is kept, the corner moves by dK1, and by (R + 3 K1 + 2 K2) df / f.
function cornerSigma(lookup, { intrinsics, mean, spread }) {
  if (!lookup.isSmooth || !intrinsics) return null;
  const { scale, corner } = lookup, [first, , , , second, third] = mean.map((g, k) => g * scale[k]);
  const byFocal = -(corner + 3 * second + 2 * third) / (1 + first);
  return deviation(spread, [[0, byFocal * scale[0]], [4, scale[4]]]);
}
