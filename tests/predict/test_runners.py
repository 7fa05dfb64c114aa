"""Runners of methods that are not installed here, with stand-ins for the methods' modules.

They show that a runner starts in an environment without this package, calls what the method
documents, and brings the answer into pixels of the picture. Where a method resizes and crops, its
stand-in does what the method's sources do, and answers as a network without error would for the
picture that it sees: the runner has to come back to the camera of the whole picture.
"""

import ast
import math
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.predict.external import make_external
from influx_wrap.predict.predictor import Footage, MethodError, Predicted
from influx_wrap.predict.process import RUNNERS, Environment
from influx_wrap.predict.run import METHODS
from influx_wrap.predict.runner import EXTERNAL, read_runner
from influx_wrap.predict.runners.perspective_fields import _relative_focal

SIZE = (16, 12)
CAMERA = (20.0, 21.0, 8.3, 5.8)
"""fx, fy, cx, cy in pixels, from the corner, of a picture of ``SIZE``."""
TORCH = f"""
import contextlib, numpy
SIZE, CAMERA = {SIZE}, {CAMERA}
bfloat16 = "bfloat16"
class cuda:
    is_available = staticmethod(lambda: False)
class Tensor(numpy.ndarray):
    def to(self, device): assert device == "cpu"; return self
    def permute(self, *axes): return self.transpose(axes)
class Model:
    def to(self, device): assert device == "cpu"; return self
    def eval(self): return self
def from_numpy(array): return array.view(Tensor)
def load(path, map_location): return open(path).read()
no_grad = contextlib.nullcontext
def autocast(kind, dtype, enabled):
    assert kind == "cpu" and not enabled
    return contextlib.nullcontext()
def matrix(fx, fy, cx, cy):
    return numpy.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
"""
MODULES = {
    "geocalib": {
        "geocalib/__init__.py": """
import types, numpy, torch
class GeoCalib(torch.Model):
    def __init__(self, weights): assert weights == "pinhole"
    def load_image(self, path):
        open(path).close()
        return numpy.zeros((3, 12, 16)).view(torch.Tensor)
    def calibrate(self, picture, camera_model):
        f, c = numpy.array([torch.CAMERA[:2]]), numpy.array([torch.CAMERA[2:]])
        # What stands behind k1 is no k2 but for the model that has one.
        camera = types.SimpleNamespace(f=f, c=c, dist=numpy.array([[-0.2, 0.03]]))
        return {"camera": camera}
"""
    },
    "perspective-fields": {
        "perspective2d.py": """
import torch
class PerspectiveFields(torch.Model):
    def __init__(self, version): assert version == "Paramnet-360Cities-edina-uncentered"
    def inference(self, img_bgr):
        assert img_bgr.shape == (12, 16, 3)
        return {"pred_general_vfov": 90.0, "pred_rel_cx": 0.0, "pred_rel_cy": 0.25}
"""
    },
    "unidepth": {
        "unidepth/models.py": """
import numpy, torch
class UniDepthV2(torch.Model):
    @classmethod
    def from_pretrained(cls, name):
        assert name == "lpiccinelli/unidepth-v2-vitl14"
        return cls()
    def infer(self, picture):
        assert picture.shape == (3, 12, 16) and picture.dtype == numpy.uint8
        return {"intrinsics": torch.matrix(*torch.CAMERA)[None]}
"""
    },
    "wildcamera": {
        "WildCamera/newcrfs/newcrf_incidencefield.py": """
import numpy, torch
class NEWCRFIF(torch.Model):
    def __init__(self, version, pretrained): assert version == "large07"
    def load_state_dict(self, state, strict): assert state == "weights" and strict
    def inference(self, picture, wtassumption):
        assert picture.size == (16, 12) and wtassumption is False
        return torch.matrix(*torch.CAMERA), None
""",
        "model_zoo/Release/wild_camera_all.pth": "weights",
    },
    "droidcalib": {
        "demo.py": """
import os, sys
sys.path.append(os.environ["PYTHONPATH"])
from torch import CAMERA
assert "--opt_intr" in sys.argv
folder = sys.argv[sys.argv.index("--imagedir") + 1]
assert sorted(os.listdir(folder)) == ["000000.png", "000001.png"], os.listdir(folder)
print("Initial intrinsics:")
print("fx = 14.0, fy = 14.0, ppx = 8.0, ppy = 6.0")
print("Estimated intrinsics:")
values = "fx = {:.2f}, fy = {:.2f}, ppx = {:.2f}, ppy = {:.2f}".format(*CAMERA)
print(values + ", xi = 0.750" if sys.argv[-1] == "mei" else values)
""",
        "droid_backends.py": "import torch",
    },
    "depth-anything-3": {
        "depth_anything_3/api.py": """
import types, numpy, torch
class DepthAnything3(torch.Model):
    @classmethod
    def from_pretrained(cls, name): return cls()
    def inference(self, pictures):
        (path,) = pictures
        (fx, fy, cx, cy), (width, height) = torch.CAMERA, torch.SIZE
        x, y = 8 / width, 4 / height
        matrix = torch.matrix(x * fx, y * fy, x * cx, y * cy)[None]
        return types.SimpleNamespace(intrinsics=matrix, depth=numpy.zeros((1, 4, 8)))
"""
    },
    "hloc": {
        "hloc/__init__.py": "",
        "hloc/extract_features.py": """
confs = {"sift": "other", "superpoint_max": {"output": "feats", "model": "superpoint"}}
def main(conf, pictures, out, image_list):
    assert conf is confs["superpoint_max"]
    assert image_list == sorted(path.name for path in pictures.iterdir())
    return out / "feats.h5"
""",
        "hloc/match_features.py": """
confs = {"NN-mutual": "other", "superpoint+lightglue": {"output": "matches"}}
def main(conf, pairs, features, out):
    assert conf is confs["superpoint+lightglue"] and features == "feats"
    return out / "matches.h5"
""",
        "hloc/reconstruction.py": """
import os, types, pycolmap
def main(sfm, pictures, pairs, features, matches, camera_mode, image_list, image_options,
         mapper_options):
    assert (features.name, matches.name) == ("feats.h5", "matches.h5")
    assert camera_mode == pycolmap.CameraMode.PER_IMAGE
    assert mapper_options == {"min_focal_length_ratio": 0.05, "max_focal_length_ratio": 20.0}
    pycolmap.IncrementalPipelineOptions(**mapper_options)
    n = len(image_list)
    assert len(pairs.read_text().splitlines()) == n * (n - 1) // 2
    Image = types.SimpleNamespace
    images, cameras = {}, {}
    for i, name in enumerate(image_list):
        camera = pycolmap.Camera.create_from_model_name(
            i, image_options["camera_model"], 100.0 + i, 16, 12
        )
        if image_options["camera_model"] != "SIMPLE_PINHOLE":
            idxs = camera.extra_params_idxs()
            params = camera.params
            params[idxs] = [-0.2, 0.03, 0.001, -0.002][: len(idxs)]
            camera.params = params
        cameras[i] = camera
        images[i] = Image(name=name, camera_id=i, has_pose=i != 1)
    return Image(images=images, cameras=cameras)
""",
    },
    "anycalib": {
        "anycalib.py": """
import numpy, torch
DISTORTION = {"pinhole": [], "radial:1": [-0.2], "radial:2": [-0.2, 0.03], "ucm": [0.75]}
class AnyCalib(torch.Model):
    def __init__(self, model_id): assert model_id == "anycalib_gen"
    def predict(self, picture, cam_id):
        assert picture.shape == (3, 12, 16) and 0 <= picture.min() <= picture.max() <= 1
        simple, _, name = cam_id.rpartition("_")
        fx, fy, cx, cy = torch.CAMERA
        values = [*([fx] if simple else [fx, fy]), cx, cy, *DISTORTION[name]]
        return {"intrinsics": numpy.array(values)}
"""
    },
    "moge-2": {
        "moge/model/v2.py": """
import torch
class MoGeModel(torch.Model):
    @classmethod
    def from_pretrained(cls, name):
        assert name == "Ruicheng/moge-2-vitl-normal"
        return cls()
    def infer(self, picture, use_fp16):
        assert picture.shape == (3, *torch.SIZE[::-1]) and picture.max() <= 1 and not use_fp16
        (fx, fy, cx, cy), (width, height) = torch.CAMERA, torch.SIZE
        return {"intrinsics": torch.matrix(fx / width, fy / height, 0.5, 0.5)}
"""
    },
    "vggt": {
        "vggt/models/vggt.py": """
import numpy, torch
class VGGT(torch.Model):
    depth_head = point_head = track_head = "heads"
    @classmethod
    def from_pretrained(cls, name):
        assert name == "facebook/VGGT-1B"
        return cls()
    def __call__(self, seen):
        assert self.depth_head is self.point_head is self.track_head is None
        height, width = seen.shape[-2:]
        resized = round(torch.SIZE[1] * 518 / torch.SIZE[0] / 14) * 14
        fx, fy = torch.CAMERA[0] * 518 / torch.SIZE[0], torch.CAMERA[1] * resized / torch.SIZE[1]
        fields = 2 * numpy.arctan([height / 2 / fy, width / 2 / fx])
        return {"pose_enc": numpy.array([[[0, 0, 0, 0, 0, 0, 1, *fields]]])}
""",
        "vggt/utils/load_fn.py": """
import numpy, torch
def load_and_preprocess_images(paths):
    (path,) = paths
    open(path).close()
    resized = round(torch.SIZE[1] * 518 / torch.SIZE[0] / 14) * 14
    return numpy.zeros((1, 3, min(resized, 518), 518)).view(torch.Tensor)
""",
        "vggt/utils/pose_enc.py": """
import numpy, torch
def pose_encoding_to_extri_intri(encoding, size):
    (height, width), fields = size, encoding[0, 0, 7:]
    fy, fx = numpy.array([height / 2, width / 2]) / numpy.tan(fields / 2)
    return None, torch.matrix(fx, fy, width / 2, height / 2)[None, None]
""",
    },
    "map-anything": {
        "mapanything/models.py": """
import numpy, torch
class MapAnything(torch.Model):
    @classmethod
    def from_pretrained(cls, name):
        assert name == "facebook/map-anything"
        return cls()
    def infer(self, views, apply_mask):
        \"\"\"Lines through the rays of all pixels, of which the first is at 0.\"\"\"
        found = numpy.eye(3)
        for axis, n in enumerate(views[0]["img"].shape[:-3:-1]):
            pixels = numpy.arange(n)
            whole = (pixels + 0.5 + views[0]["cut"][axis]) * views[0]["factor"][axis]
            slopes = (whole - torch.CAMERA[2 + axis]) / torch.CAMERA[axis]
            found[axis, axis], found[axis, 2] = numpy.polyfit(slopes, pixels, 1)
        return [{"intrinsics": found[None]}]
""",
        "mapanything/utils/image.py": """
import numpy, torch
def load_images(paths):
    (path,) = paths
    open(path).close()
    kept = numpy.array([518, 392] if torch.SIZE[0] > torch.SIZE[1] else [252, 518])
    size = numpy.array(torch.SIZE)
    resized = numpy.floor(size * (max(kept / size) + 1e-8)).astype(int)
    image = numpy.zeros((1, 3, *kept[::-1])).view(torch.Tensor)
    return [{"img": image, "cut": (resized - kept) // 2, "factor": size / resized}]
""",
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-ins are."""
    folder = tmp_path / "installed"
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def ask(
    method: str,
    folder: Path,
    settings: dict[str, str] | None = None,
    size: tuple[int, int] = SIZE,
    camera: tuple[float, ...] = CAMERA,
    n: int = 2,
) -> Predicted:
    torch = f"{TORCH}\nSIZE, CAMERA = {size}, {camera}\n"
    for name, text in {"torch.py": torch, **MODULES[method]}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tmp_path = folder.parent
    frames = tmp_path / "frames"
    frames.mkdir(exist_ok=True)
    for i in range(n):
        grey = np.full((size[1], size[0], 3), 255 * (i % 2), np.uint8)
        cv2.imwrite(str(frames / f"{i:02d}.png"), grey)
    settings = {**REPOSITORY.get(method, {}), **(settings or {})}
    settings = {key: value.format(folder=folder) for key, value in settings.items()}
    made = make_external(method, settings, Environment(sys.executable), tmp_path / "logs")
    try:
        return made.predict(Footage("clip", frames), lambda done, total: None)
    finally:
        made.close()


REPOSITORY = {name: {"repository": "{folder}"} for name in ("wildcamera", "droidcalib")}
MIDDLE = {"moge-2": (8, 6), "vggt": (8, 6)}
"""Methods that have no principal point of their own."""


PICTURE_BY_PICTURE = [name for name in MODULES if name != "hloc"]


@pytest.mark.parametrize("method", PICTURE_BY_PICTURE)
def test_adapters(method: str, folder: Path) -> None:
    predicted = ask(method, folder)
    fx, fy, cx, cy = CAMERA
    cx, cy = MIDDLE.get(method, (cx, cy))
    # From the corner to pixels' centres.
    expected = [fx, fy, cx - 0.5, cy - 0.5, 0, 0, 0, 0]
    if method == "anycalib":
        expected[4:6] = [-0.2, 0.03]
    if method == "perspective-fields":
        # Between two rays at right angles, 3/4 above and 1/4 below the axis: Thales' circle.
        focal = 12 * math.sqrt(0.75 * 0.25)
        expected = [focal, focal, 7.5, 8.5, 0, 0, 0, 0]
    np.testing.assert_allclose(predicted.answers.values, np.tile(expected, (2, 1)), atol=1e-6)


@pytest.mark.parametrize("method", ["depth-anything-3", "moge-2", "vggt", "map-anything"])
@pytest.mark.parametrize("size", [(856, 550), (361, 913), (3424, 2202)])
def test_a_known_camera_of_another_size(method: str, size: tuple[int, int], folder: Path) -> None:
    """Wide, tall (of which VGGT and MapAnything see the middle only), and large."""
    width, height = size
    camera = (1.13 * width, 1.21 * width, 0.52 * width, 0.47 * height)
    values = ask(method, folder, size=size, camera=camera).answers.values[0]
    if method in MIDDLE:
        camera = (*camera[:2], width / 2, height / 2)
    expected = [*camera[:2], camera[2] - 0.5, camera[3] - 0.5, 0, 0, 0, 0]
    np.testing.assert_allclose(values, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("method", "model", "distortion"),
    [
        ("geocalib", "pinhole", []),
        ("geocalib", "simple_radial", [-0.2]),
        ("geocalib", "radial", [-0.2, 0.03]),
        ("anycalib", "pinhole", []),
        ("anycalib", "radial:1", [-0.2]),
        ("anycalib", "simple_radial:2", [-0.2, 0.03]),
        ("anycalib", "ucm", [0.75]),
        ("anycalib", "simple_ucm", [0.75]),
        ("droidcalib", "focal", []),
        ("droidcalib", "mei", [0.75]),
    ],
)
def test_camera_models(method: str, model: str, distortion: list[float], folder: Path) -> None:
    values = ask(method, folder, {"camera_model": model}).answers.values
    is_mei = model in ("ucm", "simple_ucm", "mei")
    fy = CAMERA[0] if model.startswith("simple_") and method == "anycalib" else CAMERA[1]
    expected = np.zeros(5 if is_mei else 8)
    expected[:4] = CAMERA[0], fy, CAMERA[2] - 0.5, CAMERA[3] - 0.5
    expected[4 : 4 + len(distortion)] = distortion
    np.testing.assert_allclose(values[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("geocalib", "simple_divisional"),
        ("anycalib", "kb:4"),
        ("droidcalib", "fisheye"),
        ("colmap", "OPENCV_FISHEYE"),
        ("hloc", "FULL_OPENCV"),
    ],
)
def test_other_camera_models_are_refused(method: str, model: str, tmp_path: Path) -> None:
    words = f"{method}: camera_model is one of .*, got '{model}': other models are neither rad-tan"
    with pytest.raises(InputError, match=words):
        make_external(method, {"camera_model": model}, Environment(sys.executable), tmp_path)


@pytest.mark.parametrize(
    ("model", "distortion"),
    [
        ("SIMPLE_PINHOLE", []),
        ("SIMPLE_RADIAL", [-0.2]),
        ("RADIAL", [-0.2, 0.03]),
        ("OPENCV", [-0.2, 0.03, 0.001, -0.002]),
    ],
)
def test_hloc_has_the_settings_of_the_paper(
    model: str, distortion: list[float], folder: Path
) -> None:
    """The stand-in takes no others, and leaves the second of three frames unregistered."""
    settings = {} if model == "SIMPLE_RADIAL" else {"camera_model": model}
    answers = ask("hloc", folder, {"repository": str(folder), **settings}, n=12).answers
    assert answers.answered.nonzero()[0].tolist() == [0, 10]
    expected = np.zeros((2, 8))
    expected[:, :4] = [[100, 100, 7.5, 5.5], [102, 102, 7.5, 5.5]]
    expected[:, 4 : 4 + len(distortion)] = distortion
    np.testing.assert_allclose(answers.values[[0, 10]], expected, atol=1e-6)


def test_every_runner_has_a_stand_in() -> None:
    """But COLMAP, which is real here."""
    assert {*MODULES, "colmap"} == {*EXTERNAL}


def test_colmap_offers_no_features_that_end_it() -> None:
    """ALIKED and LightGlue abort a pycolmap without ONNX, as PyPI's is."""
    with pytest.raises(InputError, match="colmap has no setting features"):
        make_external("colmap", {"features": "ALIKED_N16ROT"}, Environment(""), Path())
    text = (RUNNERS / "colmap.py").read_text()
    assert "FeatureExtractorType" not in text
    assert "FeatureMatcherType" not in text


def test_install_lines_name_what_the_packages_do_not() -> None:
    for method, packages in {
        "perspective-fields": ("torch", "opencv-python-headless", "imageio"),
        "wildcamera": ("torch", "torchvision", "timm", "einops", "mmcv-lite"),
        "anycalib": ("torch", "numpy", "pillow"),
        "vggt": ("torch", "torchvision"),
        "map-anything": ("torch", "torchvision"),
    }.items():
        words = read_runner(RUNNERS / EXTERNAL[method]).install.replace(";", "").split()
        assert set(packages) <= set(words), method


def test_the_page_has_every_method_and_its_weights() -> None:
    page = (Path(__file__).parents[2] / "docs/predictors.md").read_text()
    for method in METHODS:
        assert f"`{method}`" in page
    for file in EXTERNAL.values():
        weights = read_runner(RUNNERS / file).settings.get("weights")
        assert weights is None or f"`{weights}`" in page


def test_newer_methods_are_short() -> None:
    for name in ("anycalib", "moge_2", "vggt", "map_anything"):
        assert len((RUNNERS / f"{name}.py").read_text().splitlines()) <= 60


def test_devices(folder: Path) -> None:
    """The stand-in has no GPU, and takes nothing but the processor."""
    for method in EXTERNAL:
        settings = read_runner(RUNNERS / EXTERNAL[method]).settings
        assert settings.get("device", "auto") == "auto"
    assert ask("wildcamera", folder, {"device": "cpu"}).answers.answered.all()


def test_droidcalib_that_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        MODULES, "droidcalib", {"demo.py": "print('no motion')", "droid_backends.py": ""}
    )
    with pytest.raises(MethodError, match="printed no estimated intrinsics"):
        ask("droidcalib", folder)
    assert "no motion" in (folder.parent / "logs" / "clip.log").read_text()


def test_focal_length_of_a_general_field_of_view() -> None:
    rng = np.random.default_rng(0)
    for focal, x, y in rng.uniform([0.4, -0.4, -0.4], [4, 0.4, 0.4], (100, 3)):
        rays = np.array([[-x, -0.5 - y, focal], [-x, 0.5 - y, focal]])
        cosine = rays[0] @ rays[1] / np.prod(np.linalg.norm(rays, axis=1))
        assert _relative_focal(math.acos(cosine), x, y) == pytest.approx(focal)


def test_runners_are_for_older_pythons_too() -> None:
    files = sorted(RUNNERS.glob("*.py"))
    assert len(files) == len(EXTERNAL) + 3
    for file in files:
        tree = ast.parse(file.read_text(), feature_version=(3, 8))
        imported = [
            node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
        ]
        assert not any("influx" in module for module in imported)
