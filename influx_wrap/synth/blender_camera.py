"""The rays of a camera for Blender's Cycles: a program in OSL, Open Shading Language.

Cycles runs it for every ray. It takes a point of the sensor, inverts the distortion there by
Newton's method, and returns the direction. It also colours the ray by its place in the pixel,
which ``blender`` needs for the blur.
"""

from __future__ import annotations

from influx_wrap.model.intrinsics import Intrinsics, fold_radius
from influx_wrap.synth.render import RenderOptions

_NO_FOLD = 1e9

_CAMERA = """
shader camera(output point position = 0, output vector direction = 0, output color throughput = 1)
{{
  float k1 = {k1}, k2 = {k2}, p1 = {p1}, p2 = {p2}, fold = {fold};
  point raster = camera_shader_raster_position();
  float right = raster[0] * {width}, down = (1 - raster[1]) * {height};
  throughput = color(1, right - floor(right), down - floor(down));
  float xd = (right - {middle_u}) / {fx}, yd = (down - {middle_v}) / {fy};

  /* The radial part, on the branch that contains the axis. */
  float distorted = hypot(xd, yd);
  float low = 0, high = fold;
  if (fold >= {no_fold}) {{
    high = max(distorted, 1e-3);
    while (high * (1 + high * high * (k1 + k2 * high * high)) < distorted) high *= 2;
  }}
  float r = min(distorted, high);
  for (int i = 0; i < 40; i++) {{
    float r2 = r * r;
    float value = r * (1 + r2 * (k1 + k2 * r2)) - distorted;
    if (value < 0) low = r; else high = r;
    float next = r - value / (1 + r2 * (3 * k1 + 5 * k2 * r2));
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    float step = fabs(next - r);
    r = next;
    if (step <= 1e-6 * r) break;
  }}

  /* Both parts, from there. */
  float scale = distorted > 0 ? r / distorted : 1;
  float a = xd * scale, b = yd * scale;
  float ex = 0, ey = 0, jacobian = 0;
  for (int i = 0; i < 8; i++) {{
    float r2 = a * a + b * b;
    float radial = 1 + r2 * (k1 + k2 * r2), slope = 2 * k1 + 4 * k2 * r2;
    ex = a * radial + 2 * p1 * a * b + p2 * (r2 + 2 * a * a) - xd;
    ey = b * radial + p1 * (r2 + 2 * b * b) + 2 * p2 * a * b - yd;
    float x_a = radial + a * a * slope + 2 * p1 * b + 6 * p2 * a;
    float x_b = a * b * slope + 2 * p1 * a + 2 * p2 * b;
    float y_b = radial + b * b * slope + 6 * p1 * b + 2 * p2 * a;
    jacobian = x_a * y_b - x_b * x_b;
    if (fabs(ex) + fabs(ey) < 1e-7 * distorted) break;
    a -= (y_b * ex - x_b * ey) / jacobian;
    b -= (x_a * ey - x_b * ex) / jacobian;
  }}

  if (fabs(ex) + fabs(ey) < 1e-5 * (1 + distorted) && hypot(a, b) < fold && jacobian > 0)
    direction = normalize(vector(a, -b, 1));
  else {{
    /* No ray: look away from far behind the scene, where there is only background. */
    position = point(0, 0, -1e6);
    direction = vector(0, 0, -1);
  }}
}}
"""


def camera_program(
    intrinsics: Intrinsics, image_size: tuple[int, int], options: RenderOptions
) -> str:
    """OSL source of the rays of a camera."""
    reach = options.reach_px
    numbers = {
        **intrinsics.as_dict(),
        "width": image_size[0] + 2 * reach,
        "height": image_size[1] + 2 * reach,
        # From the corner of the first pixel that is rendered, not from the centre of (0, 0).
        "middle_u": intrinsics.cx + 0.5 + reach,
        "middle_v": intrinsics.cy + 0.5 + reach,
        "fold": min(fold_radius(intrinsics.k1, intrinsics.k2), _NO_FOLD),
        "no_fold": _NO_FOLD,
    }
    return _CAMERA.format(**{name: f"({float(value)!r})" for name, value in numbers.items()})
