"""My method: what it is, in a line; influx-calib predict --list shows it.

Replace what is marked with 1 to 4. This file runs as it is: it takes one focal length for all
pictures. It is run by the Python in which the method is installed, which need not have influx_wrap.
"""

# 1. How to install the method. Shown when what ``load`` imports is missing.
INSTALL = "My method needs nothing: pip install nothing."

# 2. What --set KEY=VALUE may change, with the defaults: texts, whole numbers and numbers.
SETTINGS = {"focal_ratio": 1.2, "device": "auto"}

# Optional, at their defaults:
# KIND = "rad-tan"      or "mei", whose answers have xi; or a dict from each value of the setting
#                       camera_model to one of the two
# STRIDE = 1            every which frame is looked at
# TIMEOUT_S = 300       how long it may be silent
# WHOLE_VIDEO = False   True: predict gets {frame: path} with all frames of a video at once, and
#                       returns {frame: {...}}, or {"all": {...}} for one camera of them all


def load(settings):
    """3. Import the method and load its weights, once for all videos."""
    import struct

    ratio = settings["focal_ratio"]

    def predict(path):
        """4. The camera of one picture, a PNG file.

        fx, fy, cx, cy in pixels of that picture, and k1, k2, p1, p2 if they are not zero. cx and
        cy count from the corner: the middle of the picture is width / 2, height / 2. A method that
        puts pixel (0, 0) at a pixel's centre has to add 0.5. One that sees a smaller picture, or a
        part, has to undo that. None: the method does not know.
        """
        with open(path, "rb") as file:
            width, height = struct.unpack(">II", file.read(24)[16:])
        focal_px = ratio * width
        return {"fx": focal_px, "fy": focal_px, "cx": width / 2, "cy": height / 2}

    return predict
