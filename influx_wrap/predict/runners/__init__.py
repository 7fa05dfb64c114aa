"""One file per method, run by ``serve`` in the method's own environment.

That environment has neither this package nor, perhaps, this version of Python: the files here
use the standard library and the method, and keep to Python 3.8. A runner's facts are constants
that are read without running it:

    INSTALL      how to install the method, in a sentence or two
    SETTINGS     what ``--set`` may change, with the defaults
    KIND         of camera, "rad-tan" unless given; where it depends on the setting camera_model,
                 {"pinhole": "rad-tan", "mei": "mei"}: other values are refused
    WHOLE_VIDEO  True if frames are not answered one by one, but when all were seen
    STRIDE       every which frame is looked at, 1 unless given
    TIMEOUT_S    how long the method may be silent, 300 unless given

``load(settings)`` prepares the method and returns what predicts: from the path of a picture
its intrinsics by name, or None; for a whole video, from {frame: path} the intrinsics {frame:
{...}}, or {"all": {...}} where they hold for every frame. cx and cy count from the corner of
the picture, as in InFlux's files; distortion that is not named is zero.
"""
