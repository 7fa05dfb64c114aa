"""The same pictures from Blender's Cycles, an independent renderer (paper, supplement,
"Rendering Synthetic Targets").

The rays are exact here too: the camera is a small program that Cycles runs for every ray
(``blender_camera``). The board is geometry, one face per cell, so its edges are as sharp as
numbers allow; it glows, so that no lamp and no shadow disturbs its brightness. A pixel is the
mean of many rays spread evenly over its square.

The blur is a linear fit within each pixel as in ``render``, and needs of every pixel its
mean and its first moments. All come out of one rendering: the camera colours each ray by
its place in the pixel, so red is the mean of the light, green and blue are its means
weighted by u and by v. Vignetting and noise are added afterwards.

Cycles computes in 32 bits and its pictures are sums over samples: this renderer is
for checking ``render`` and for scenes it cannot do, not for speed.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import j1

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.target import Target
from influx_wrap.synth.blender_camera import camera_program
from influx_wrap.synth.render import RenderOptions, sheet_cells

SPHERE_RADIUS_M = 0.02
"""Of the sphere that stands for the drone's LED."""

_FINE = 16


class BlenderRenderer:
    """A camera with pictures of (width, height) pixels and a board, as a Blender scene.

    ``samples`` is the number of rays per pixel; the default keeps corners well within
    0.05 px. ``threads`` is the number of processor cores (None: all). The same arguments
    give the same picture.

    While Blender is at work nothing that this process prints is seen, a progress bar of
    another thread included.
    """

    def __init__(
        self,
        intrinsics: Intrinsics,
        image_size: tuple[int, int],
        target: Target,
        options: RenderOptions,
        *,
        samples: int = 64,
        threads: int | None = None,
    ) -> None:
        if samples < 1 or (threads is not None and threads < 1):
            raise InputError("a Blender picture needs at least one sample and one thread.")
        x_lines, y_lines, above_background = sheet_cells(target, options)
        # Without the frame of nothing that surrounds the sheet.
        x_lines, y_lines, cells = x_lines[1:-1], y_lines[1:-1], above_background[1:-1, 1:-1]
        is_white = cells == options.white - options.background
        self._corners_m = np.stack(np.meshgrid(x_lines, y_lines), axis=-1).reshape(-1, 2)
        self._options = options
        self._image_size = image_size
        with _quiet():
            bpy = _load_bpy()
            self._bpy = bpy
            scene = _new_scene(bpy, image_size, options.reach_px, samples, threads)
            scene.camera = _new_camera(bpy, camera_program(intrinsics, image_size, options))
            self._board = _new_object(
                bpy,
                len(self._corners_m),
                _cell_faces(is_white.shape),
                [options.black, options.white],
                is_white,
            )
            self._sphere_m, faces = _sphere(SPHERE_RADIUS_M)
            self._sphere = _new_object(
                bpy, len(self._sphere_m), faces, [255.0], np.zeros(len(faces), dtype=bool)
            )
            things = scene.camera, self._board, self._sphere
            for thing in things:
                scene.collection.objects.link(thing)
        self._scene = scene
        owned = [scene, scene.world, *things, *(t.data for t in things)]
        owned += [m for t in things[1:] for m in t.data.materials]
        # Blender keeps its data until told otherwise; at exit it clears up by itself.
        weakref.finalize(self, bpy.data.batch_remove, owned).atexit = False

    def render(
        self,
        rotation: ArrayLike,
        translation: ArrayLike,
        rng: np.random.Generator | None = None,
    ) -> NDArray[np.uint8]:
        """Picture (H, W) of a board whose pose ``rotation`` (3, 3), ``translation`` (3,) in
        metres takes its points to camera space. ``rng`` is needed only if there is noise."""
        rotation, translation = np.asarray(rotation, dtype=float), np.asarray(translation, float)
        if not rotation[:, 2] @ translation < 0:
            raise InputError("the board shows its back to the camera; turn it to face the camera.")
        corners = self._corners_m @ rotation[:, :2].T + translation
        light = self._light(self._board, corners, self._options.background)
        return _develop(light, self._options, rng)

    def render_sphere(
        self, point: ArrayLike, rng: np.random.Generator | None = None
    ) -> NDArray[np.uint8]:
        """Picture (H, W, 3), red first, of a red sphere around ``point`` (3,) in camera space,
        in metres, before a white background: a drone's LED as the paper renders it."""
        points = self._sphere_m + np.asarray(point, dtype=float)
        covered = self._light(self._sphere, points, background=0.0)[..., None] / 255
        red, white = np.array([1, 0, 0]), np.ones(3)
        return _develop(
            self._options.white * (covered * red + (1 - covered) * white), self._options, rng
        )

    def _light(self, thing: Any, points: FloatArray, background: float) -> NDArray[np.float32]:
        """Brightness (H, W) of 255 with only ``thing`` in the scene, its vertices (N, 3) at
        ``points`` in camera space."""
        if not np.isfinite(points).all():
            raise InputError("a pose has a number that is not finite; nothing can be rendered.")
        # Blender's camera looks along -z, with y up.
        points = points * (1.0, -1.0, -1.0)
        thing.data.vertices.foreach_set("co", points.astype(np.float32).ravel())
        thing.data.update()
        for other in (self._board, self._sphere):
            other.hide_render = other is not thing
        world = self._scene.world.node_tree.nodes["Background"]
        world.inputs["Color"].default_value = (*[background / 255] * 3, 1.0)

        width, height = self._image_size
        margin = 2 * self._options.reach_px
        pixels = np.empty((height + margin, width + margin, 4), dtype=np.float32)
        with tempfile.TemporaryDirectory() as folder, _quiet():
            path = str(Path(folder) / "picture.exr")
            self._scene.render.filepath = path
            try:
                self._bpy.ops.render.render(scene=self._scene.name, write_still=True)
                picture = self._bpy.data.images.load(path)
            except RuntimeError as error:
                raise InputError(f"Blender could not render: {str(error).strip()}") from error
            picture.pixels.foreach_get(pixels.ravel())
            self._bpy.data.images.remove(picture)
        return _blur(255 * pixels[::-1, :, :3], self._options)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence standard output and error of the whole process: Blender writes past Python's."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(stream) for stream in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, stream)
            os.close(copy)
        os.close(nowhere)


def _load_bpy() -> Any:
    """Blender as a module, loaded when first needed: it is big, and an extra."""
    try:
        import bpy
    except ModuleNotFoundError as error:
        raise InputError(
            'Blender is not installed; pip install "influx_wrap[blender]" (needs Python 3.11).'
        ) from error
    except ImportError as error:
        raise InputError(
            f"Blender cannot be loaded: {error}; docs/rendering.md lists the packages it needs."
        ) from error
    return bpy


def _new_scene(
    bpy: Any, image_size: tuple[int, int], margin_px: int, samples: int, threads: int | None
) -> Any:
    """An empty scene, rendered pixel by pixel without anything that smooths, with a margin
    around the picture."""
    scene = bpy.data.scenes.new("influx_wrap")
    scene.world = bpy.data.worlds.new("background")
    scene.world.cycles.sampling_method = "NONE"
    render = scene.render
    render.engine = "CYCLES"
    render.resolution_x, render.resolution_y = (n + 2 * margin_px for n in image_size)
    render.resolution_percentage = 100
    render.image_settings.file_format = "OPEN_EXR"
    render.image_settings.color_mode = "RGB"
    render.image_settings.color_depth = "32"
    render.image_settings.exr_codec = "NONE"
    if threads is not None:
        render.threads_mode = "FIXED"
        render.threads = threads
    cycles = scene.cycles
    cycles.device = "CPU"
    cycles.samples = samples
    cycles.seed = 0
    cycles.sampling_pattern = "TABULATED_SOBOL"
    cycles.use_adaptive_sampling = False
    cycles.use_denoising = False
    cycles.pixel_filter_type = "BOX"
    cycles.filter_width = 1.0
    cycles.max_bounces = 0
    return scene


def _new_camera(bpy: Any, program: str) -> Any:
    """A camera at the origin whose rays come from an OSL program."""
    # PyPI's bpy lacks the module with which Blender reads a program's parameters, so the
    # program has none, and is compiled here.
    import _cycles

    camera = bpy.data.cameras.new("camera")
    camera.type = "CUSTOM"
    camera.custom_mode = "INTERNAL"
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder) / "camera.osl", Path(folder) / "camera.oso"
        source.write_text(program)
        if not _cycles.osl_compile(str(source), str(compiled)):
            raise RuntimeError("Blender does not take the program of the camera's rays.")
        camera.custom_bytecode = compiled.read_text()
    camera.custom_bytecode_hash = hashlib.sha256(camera.custom_bytecode.encode()).hexdigest()[:32]
    camera.clip_start, camera.clip_end = 1e-6, 1e9
    return bpy.data.objects.new("camera", camera)


def _new_object(
    bpy: Any,
    n_vertices: int,
    faces: IntArray,
    levels: list[float],
    level_of_face: BoolArray,
) -> Any:
    """A thing with ``faces`` (F, corners) that glow at one of ``levels``, of 255."""
    mesh = bpy.data.meshes.new("mesh")
    for level in levels:
        material = bpy.data.materials.new("glow")
        nodes = material.node_tree.nodes
        nodes.clear()
        emission, output = nodes.new("ShaderNodeEmission"), nodes.new("ShaderNodeOutputMaterial")
        emission.inputs["Color"].default_value = (*[level / 255] * 3, 1.0)
        material.node_tree.links.new(emission.outputs["Emission"], output.inputs["Surface"])
        material.cycles.emission_sampling = "NONE"
        mesh.materials.append(material)
    mesh.from_pydata(np.zeros((n_vertices, 3)), [], faces)
    mesh.polygons.foreach_set("material_index", level_of_face.ravel().astype(np.int32))
    return bpy.data.objects.new("thing", mesh)


def _cell_faces(shape: tuple[int, ...]) -> IntArray:
    """Faces (rows * columns, 4) of a grid of cells over its row-major corners."""
    rows, columns = shape
    first = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)).ravel()
    return np.stack([first, first + 1, first + columns + 2, first + columns + 1], axis=1)


def _sphere(radius_m: float) -> tuple[FloatArray, IntArray]:
    """Vertices (N, 3) and faces (F, 3) of a sphere, within 0.02 % of its radius."""
    import bmesh

    sphere = bmesh.new()
    bmesh.ops.create_icosphere(sphere, subdivisions=6, radius=radius_m)
    vertices = np.array([vertex.co for vertex in sphere.verts], dtype=float)
    faces = np.array([[v.index for v in face.verts] for face in sphere.faces])
    sphere.free()
    return vertices, faces


def _blur(light: NDArray[np.float32], options: RenderOptions) -> NDArray[np.float32]:
    """Light (H, W) that comes through the blur from what the camera's program collects,
    (H + 2 r, W + 2 r, 3) with r = ``options.reach_px``."""
    mean = np.ascontiguousarray(light[..., 0])
    reach = options.reach_px
    if reach == 0:
        return mean
    moments = (light[..., axis] - 0.5 * mean for axis in (1, 2))
    blurred = np.zeros_like(mean)
    for plane, kernel in zip((mean, *moments), _blur_kernels(options), strict=True):
        blurred += cv2.filter2D(plane, -1, kernel)
    return blurred[reach:-reach, reach:-reach]


def _blur_kernels(options: RenderOptions) -> list[NDArray[np.float32]]:
    """Mean and slopes in u and in v, each (2 r + 1, 2 r + 1), of the best linear fit within
    every pixel to the pixel's square, the Gaussian and the disc together.

    The three are a product in the frequencies, where each has a closed form.
    """
    n = 2 * options.reach_px + 1
    frequency = np.fft.fftfreq(n * _FINE, 1 / _FINE)
    first_sample_px = (1 / _FINE - n) / 2
    along = np.sinc(frequency) * np.exp(
        2j * np.pi * frequency * first_sample_px - 2 * (np.pi * frequency * options.blur_px) ** 2
    )
    turns = 2 * np.pi * options.defocus_px * np.hypot(frequency, frequency[:, None])
    disc = np.divide(2 * j1(turns), turns, out=np.ones_like(turns), where=turns > 0)
    fine = np.fft.ifft2(disc * along * along[:, None]).real * _FINE**2
    blocks = fine.reshape(n, _FINE, n, _FINE)
    mean = np.full(_FINE, 1 / _FINE)
    offset_px = (np.arange(_FINE) + 0.5) / _FINE - 0.5
    slope = offset_px / np.sum(offset_px**2)
    weights = (mean, mean), (mean, slope), (slope, mean)
    return [np.einsum("vjui,j,i->vu", blocks, *pair).astype(np.float32) for pair in weights]


def _develop(
    light: NDArray[np.float32], options: RenderOptions, rng: np.random.Generator | None
) -> NDArray[np.uint8]:
    """Light (H, W) or (H, W, 3) to bytes, with vignetting and noise."""
    height, width = light.shape[:2]
    v, u = np.ogrid[1 - height : height : 2, 1 - width : width : 2]
    corner = max((width - 1) ** 2 + (height - 1) ** 2, 1)
    kept = 1 - options.vignetting * (u * u + v * v) / corner
    level = (light.T * kept.T).T
    if options.noise > 0:
        if rng is None:
            raise InputError("noise in a picture needs a random number generator.")
        level += rng.normal(0, options.noise, level.shape)
    return np.clip(level + 0.5, 0, 255).astype(np.uint8)
