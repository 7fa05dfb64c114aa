"""``influx-calib export``: a clip's intrinsics, or a lens's table, for other programs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from influx_wrap.cli.options import PATH, catalogue_option, choice_option, crop, image_size
from influx_wrap.cli.progress import watch
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA, load_catalogue
from influx_wrap.formats.export import EXPORTS, LONG, notes, read_clip
from influx_wrap.formats.files import make_folder
from influx_wrap.lut.lens_model import make_lens_model
from influx_wrap.lut.schemes import DEFAULT, SCHEMES
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.framing import Crop, make_framing
from influx_wrap.model.table import Table


@click.command("export")
@click.argument("source", metavar="GT.json|LUT.json", type=PATH)
@click.option("--to", type=click.Choice(list(EXPORTS)), required=True, help="The format.")
@click.option("--out", type=PATH, required=True, help="File, or folder of stmap and camchain.")
@click.option("--camera", show_default=f"as the file says, else {CAMERA}",
              help="Camera, by its name in the catalogue, if the file does not say.")  # fmt: skip
@click.option("--size", type=image_size, metavar="WxH", show_default="as calibrated",
              help="Width and height in pixels of the pictures that the export is for, if they "
              "were scaled.")  # fmt: skip
@click.option("--crop", "window", type=crop, metavar="center|WxH[+X+Y]", show_default="nothing cut",
              help="What they show, in calibrated pixels: the middle in the shape of --size, or a "
              "window, in the middle or at X, Y.")  # fmt: skip
@click.option("--stretch", is_flag=True, help="They were scaled to --size whatever its shape.")
@click.option("--clip", "name", show_default="as the file says, else the file's name",
              help="What the clip is called.")  # fmt: skip
@choice_option("--scheme", SCHEMES, DEFAULT, "Whose answers at a table's settings are written.")
@catalogue_option
def command(
    catalogue: Path | None,
    source: Path,
    to: str,
    out: Path,
    camera: str | None,
    size: tuple[int, int] | None,
    window: Crop | None,
    stretch: bool,
    name: str | None,
    scheme: str,
) -> None:
    """Write the intrinsics of a clip's frames, or of a table's settings, as other programs
    read them. docs/exports.md says what each format can hold. At a table's settings, smooth says
    what all experiments together say; the other schemes say what was measured there.

    Intrinsics are those of pictures of the calibrated size. For others say what became of them:
    --size alone if the whole picture was scaled, with --crop if it was cut before.

    \b
    Example:
      influx-calib export gt.json --to nerfstudio --out transforms.json
      influx-calib export lut.json --to ulens --out canon17.ulens
      influx-calib export gt.json --to colmap --out cameras.txt --size 1920x1080 --crop center
    """
    known = load_catalogue(catalogue)

    def answers_of(table: Table) -> FloatArray:
        return make_lens_model(table, scheme).query(table.lfl_mm, table.fd_m).intrinsics

    own = known.camera(camera) if camera else None
    if out.resolve() == source.resolve():
        raise InputError(f"--out {out} would replace what is read. Choose another name.")
    if name is not None and not name.strip():
        raise InputError("--clip needs a name.")
    if stretch and size is None:
        raise InputError("--stretch needs the --size that the pictures were scaled to.")
    clip = read_clip(source, own, known.camera(CAMERA), answers_of, name)
    if not clip.answered.any():
        raise InputError(f"{source} has no frame with intrinsics: there is nothing to export.")
    framing = make_framing(clip.image_size, size, window, stretch=stretch)
    errors = Console(stderr=True)
    if not framing.is_identity:
        clip = framing.clip(clip)
        errors.print(f"[yellow]note:[/] {escape(framing.sentence)}", soft_wrap=True)
    make_folder(out.parent)
    with watch(f"writing {to}", errors) as progress:
        if to in LONG:
            LONG[to](clip, out, progress)
        else:
            EXPORTS[to](clip, out)
    for sentence in notes(clip, to):
        errors.print(f"[yellow]note:[/] {escape(sentence)}", soft_wrap=True)
    answers().print(
        f"{int(clip.answered.sum())} frames written: {escape(str(out))}", soft_wrap=True
    )
