"""What the lens model cannot say, found by comparing the views with each other.

The usual covariance of a fit holds if the model is right and every corner's error is its own.
Real lenses have more than k1 and k2, real boards are not as their files say, and then errors
are shared by all corners of a view and by all views that are alike. How much that matters can
be seen: fits to different halves of the views would differ by more than the usual covariance
allows. Here the halves are weighted (Fay's balanced half-samples) and the fits are one
Gauss-Newton step each, so nothing is fitted again.

Views that are alike share their errors. Near-identical ones count as one view; views that are
similar stay together when the halves are drawn.

Halves need many views to show a small excess. Errors that neighbouring corners share are seen
sooner: of white noise a view's residuals have the same share in every direction, of errors that
change slowly over the picture most is in the few directions that move the intrinsics. So all
views' residuals in these directions are compared with the noise of all corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.problem import Problem
from influx_wrap.calibrate.uncertainty import inverse_information
from influx_wrap.model.arrays import FloatArray, IntArray

NEAR_IDENTICAL = 0.01
SIMILAR = 0.08
"""How far the corners of two views are apart (RMS), in picture diagonals."""
HALVES = 200
CONTRAST = 0.98
"""Weights of the two halves are 1 + CONTRAST and 1 - CONTRAST."""
CHANCES = 200
CERTAINTY = 0.99
"""How often noise alone must stay below what counts as the model's error."""
MIN_GROUPS = 6
"""With fewer different views the halves say nothing."""
SHARED_SIGMAS = (3.0, 4.0)
"""How clearly, in its standard deviations, noise in the directions of the intrinsics must exceed
that of the corners to be believed a little, and to be believed."""


@dataclass(frozen=True, eq=False)
class ViewInformation:
    """What every view says about the n shared parameters, with its pose eliminated.

    information  (V, n, n) for a corner sigma of 1 px
    score        (V, n) gradient; zero in sum at the optimum
    """

    information: FloatArray
    score: FloatArray


@dataclass(frozen=True, eq=False)
class Spread:
    """Covariance (n, n) of the shared parameters with the model's own error in it.

    groups     number of different views, near-identical ones counted once
    inflation  largest ratio by which a variance grew beyond what noise alone explains; None
               where there are too few different views to say
    halves     (n, n) covariance by what the halves alone show, and
    halves_inflation  how far that grew: for judging a parameter that can stand for an error of
               the model, which is all that residuals along it tell
    """

    covariance: FloatArray
    groups: int
    inflation: float | None
    halves: FloatArray
    halves_inflation: float | None


def view_information(
    problem: Problem, theta: FloatArray, bow: FloatArray | None, poses: FloatArray,
    weights: FloatArray,
) -> ViewInformation:  # fmt: skip
    """Each view's information and score at a fit."""
    n_bow = 0 if bow is None else 3
    n_shared, n_views = 8 + n_bow, problem.n_views
    h = np.empty((n_views, n_shared + 6, n_shared + 6))
    g = np.empty((n_views, n_shared + 6))
    kernels.linearise_views(
        theta, np.zeros(3) if bow is None else bow, n_bow, poses, problem.data, weights,
        problem.count, problem.first, h, g,
    )  # fmt: skip
    used = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0
    h[~used, n_shared:, n_shared:] = np.eye(6)
    h_pose, h_mixed = h[:, n_shared:, n_shared:], h[:, n_shared:, :n_shared]
    eliminated = np.linalg.solve(h_pose, h_mixed)
    information = h[:, :n_shared, :n_shared] - np.swapaxes(h_mixed, 1, 2) @ eliminated
    score = g[:, :n_shared] - np.einsum("vpi,vp->vi", eliminated, g[:, n_shared:])
    return ViewInformation(information, score)


def alike(outlines: FloatArray, limit_px: float) -> IntArray:
    """(V,) a group number for every view: those of a group lie within ``limit_px`` (RMS).

    outlines  (V, P, 2) where the same points of the target are, by pinhole projection
    """
    if len(outlines) == 1:
        return np.zeros(1, dtype=np.int64)
    apart = pdist(outlines.reshape(len(outlines), -1)) / np.sqrt(outlines.shape[1])
    groups = fcluster(linkage(apart, "complete"), limit_px, "distance")
    return np.asarray(groups, dtype=np.int64) - 1


def outlines_of(points: FloatArray, theta: FloatArray, poses: FloatArray) -> FloatArray:
    """(V, 5, 2) pinhole projections of a target's centre and four outermost points (T, 3)."""
    centred = points - points.mean(axis=0)
    x, y = (centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T).T
    extreme = [int(np.argmax(a * x + b * y)) for a in (-1, 1) for b in (-1, 1)]
    chosen = np.concatenate([points.mean(axis=0)[None], points[extreme]])
    rotations, translations = poses[:, :9].reshape(-1, 3, 3), poses[:, 9:]
    camera = np.einsum("vij,pj->vpi", rotations, chosen) + translations[:, None]
    # What is behind the camera is somewhere far outside of the picture.
    depth = np.maximum(camera[..., 2:], 1e-3 * np.abs(camera).max())
    return theta[2:4] + theta[:2] * camera[..., :2] / depth


def spread(
    views: ViewInformation, outlines: FloatArray, used: IntArray, diagonal_px: float,
    sigma_px: float, prior: FloatArray,
) -> Spread:  # fmt: skip
    """Covariance of the shared parameters from noise and from how the views disagree.

    used      (U,) the views that took part
    sigma_px  noise of a corner
    prior     (n,) information of a prior, for a corner sigma of 1 px
    """
    information, score = views.information[used], views.score[used]
    if not (len(used) and np.isfinite(information).all()):
        raise np.linalg.LinAlgError("no view determines the intrinsics")
    shared = _shared_noise(information, score, sigma_px)
    identical = alike(outlines[used], NEAR_IDENTICAL * diagonal_px)
    with np.errstate(over="ignore", invalid="ignore"):
        base = _noise_covariance(information, identical, sigma_px, prior)
    if not np.isfinite(base).all():
        raise np.linalg.LinAlgError("the views do not determine the intrinsics")
    n_groups = int(identical.max()) + 1
    similar = alike(outlines[used], SIMILAR * diagonal_px)
    if similar.max() + 1 < MIN_GROUPS:
        # It cannot be told how much they share, so all of it is taken as shared.
        together = _noise_covariance(information, similar, sigma_px, prior)
        return Spread(shared * together, n_groups, None, together, None)
    membership = np.eye(similar.max() + 1)[similar].T
    # In parameters whose noise covariance is the identity every direction would be 1 but for
    # chance, and nothing depends on the units in which the target or the lens are described.
    root = _root(base)
    grouped = root.T @ np.einsum("kv,vij->kij", membership, information) @ root
    whitened_prior = (root.T * prior) @ root
    signs = _halves(len(membership))
    seen = _half_sample_covariance(grouped, membership @ score @ root, signs, whitened_prior)
    excess, directions = np.linalg.eigh(seen)
    usual, rare = _largest_by_chance(grouped, signs, whitened_prior, sigma_px)
    # The clearer it is that there is more than noise, the less of it is taken for a rare chance.
    chance = usual + (rare - usual) * min(1.0, rare / excess[-1])
    turned = root @ directions
    covariances, inflations = [], []
    for least in (shared, 1.0):
        factors = np.maximum(least, excess - (chance - 1.0))
        covariances.append((turned * factors) @ turned.T)
        inflations.append(float(factors.max()))
    return Spread(covariances[0], n_groups, inflations[0], covariances[1], inflations[1])


def _shared_noise(information: FloatArray, score: FloatArray, sigma_px: float) -> float:
    """Variance of the residuals in the directions that move the intrinsics, over that of a corner
    in any direction; 1 if it may be.

    information, score  (U, n, n) and (U, n) of the views in use
    """
    scale = 1 / np.sqrt(np.maximum(np.einsum("vii->vi", information), 1e-300))
    values, vectors = np.linalg.eigh(information * scale[:, :, None] * scale[:, None])
    along = np.einsum("vij,vi->vj", vectors, scale * score)
    # What a view does not determine, rounding does.
    seen = values > 1e-10 * values[:, -1:]
    squares = np.where(seen, along**2 / np.where(seen, values, 1.0), 0.0).sum() / sigma_px**2
    # A fit takes one degree of freedom for each parameter.
    degrees = int(seen.sum()) - score.shape[1]
    if degrees < 1:
        return 1.0
    ratio = float(squares) / degrees
    few, enough = SHARED_SIGMAS
    clear = ((ratio - 1) / math.sqrt(2 / degrees) - few) / (enough - few)
    return 1 + (ratio - 1) * min(max(clear, 0.0), 1.0)


def _noise_covariance(
    information: FloatArray, identical: IntArray, sigma_px: float, prior: FloatArray
) -> FloatArray:
    """The covariance if the errors of near-identical views are the same errors."""
    inverse = inverse_information(information.sum(axis=0) + np.diag(prior))
    copies = np.bincount(identical)[identical]
    counted = np.einsum("v,vij->ij", copies.astype(float), information) + np.diag(prior)
    return sigma_px**2 * inverse @ counted @ inverse


def _root(covariance: FloatArray) -> FloatArray:
    """(n, n) R with R R^T = covariance; in other units of the parameters its rows are scaled.

    It is the symmetric root of the correlations: an eigenvector's sign, which is arbitrary, does
    not matter to it, and a correlation of nearly 1 has one, too.
    """
    sigma = np.sqrt(np.diag(covariance))
    root: FloatArray = sigma[:, None] * _symmetric_root(covariance / np.outer(sigma, sigma))
    return root


def _symmetric_root(matrices: FloatArray) -> FloatArray:
    """(..., n, n) symmetric square roots of symmetric matrices without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, 1e-15 * values[..., -1:])
    root: FloatArray = (vectors * np.sqrt(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return root


def _halves(n_groups: int) -> FloatArray:
    """(HALVES, K) plus and minus one, as many of each; the same for the same K."""
    rng = np.random.default_rng(0)
    base = np.where(np.arange(n_groups) < n_groups // 2, 1.0, -1.0)
    return rng.permuted(np.tile(base, (HALVES, 1)), axis=1)


def _half_sample_steps(
    information: FloatArray, scores: FloatArray, signs: FloatArray, prior: FloatArray
) -> FloatArray:
    """(H, m, n) how far the parameters move if one half counts more than the other.

    information  (K, n, n) of the groups; scores (K, m, n), m alternatives of them
    prior        (n, n) information of a prior
    """
    weights = 1 + CONTRAST * signs
    system = np.einsum("hk,kij->hij", weights, information) + prior
    gradient = np.einsum("hk,kmi->him", weights, scores)
    return np.swapaxes(np.linalg.solve(system, gradient), 1, 2) / CONTRAST


def _half_sample_covariance(
    information: FloatArray, scores: FloatArray, signs: FloatArray, prior: FloatArray
) -> FloatArray:
    # The prior pulls at the optimum, too; what is left of the scores' sum is its share.
    balanced = scores - scores.mean(axis=0)
    steps = _half_sample_steps(information, balanced[:, None], signs, prior)[:, 0]
    return steps.T @ steps / len(steps)


def _largest_by_chance(
    information: FloatArray, signs: FloatArray, prior: FloatArray, sigma_px: float
) -> tuple[float, float]:
    """What the largest ratio is if there is nothing but noise, and what it hardly ever exceeds.

    information  (K, n, n) of the groups in parameters whose noise covariance is the identity
    """
    rng = np.random.default_rng(1)
    scores = sigma_px * np.einsum(
        "kij,mkj->kmi",
        _symmetric_root(information),
        rng.standard_normal((CHANCES, *information.shape[:2])),
    )
    moved = np.linalg.solve(information.sum(axis=0) + prior, scores.sum(axis=0).T).T
    scores -= np.einsum("kij,mj->kmi", information, moved)
    steps = _half_sample_steps(information, scores, signs, prior)
    covariances = np.einsum("hmi,hmj->mij", steps, steps) / len(steps)
    largest = np.linalg.eigvalsh(covariances)[:, -1]
    return float(np.median(largest)), float(np.quantile(largest, CERTAINTY))
