"""``influx-calib kalibr fork``: upstream's Kalibr with our patches."""

from __future__ import annotations

from pathlib import Path

import click

from influx_wrap.cli.options import PATH
from influx_wrap.engines.kalibr_fork import SOURCE, make_fork, read_series

FOLDER = Path("third_party/kalibr/fork")
DOCKERFILE = "Dockerfile_ros1_20_04"


@click.command("fork")
@click.argument("checkout", type=PATH, required=False)
@click.option(
    "--from",
    "repository",
    metavar="REPOSITORY",
    help="Address or folder to clone from.  [default: upstream's, on GitHub]",
)
def command(checkout: Path | None, repository: str | None) -> None:
    """Add the lines of patches/ to CHECKOUT, which is cloned if it is not there.

    CHECKOUT is third_party/kalibr/fork of this clone of influx_wrap unless given. The patches
    are for one commit of upstream; with any other, nothing is changed and the file that differs
    is named.

    \b
    Example:
      influx-calib kalibr fork
      influx-calib kalibr fork ~/kalibr --from ~/mirror/kalibr.git
    """
    series = read_series()
    folder = SOURCE / FOLDER if checkout is None else checkout
    is_new = make_fork(folder, series, repository)
    number, commit = len(series.patches), series.commit[:12]
    done = f"Kalibr {commit} with {number} patches" if is_new else "our fork already"
    click.echo(f"{folder}: {done}.")
    click.echo(
        "\n".join(
            [
                "Build it as upstream documents, as an image (--engine kalibr --image my-kalibr):",
                f"  docker build --tag my-kalibr --file {folder / DOCKERFILE} {folder}",
                "Or in a catkin workspace, with its devel/lib/kalibr first on the PATH. Then:",
                "  influx-calib kalibr check [--image my-kalibr]",
            ]
        )
    )
