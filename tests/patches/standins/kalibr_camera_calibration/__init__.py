"""Stand-in for what the modules of the series use of Kalibr's calibration.

A camera of the tests calibrates itself; a camchain has what the tests read of it.
"""


def calibrateIntrinsics(camera, observations):
    return camera.calibrate(observations)


def saveChainParametersYaml(calibrator, path, graph):
    projection = calibrator.cameras[0].geometry.projection()
    write_camchain(
        path,
        projection.getParameters().flatten().tolist(),
        projection.distortion().getParameters().flatten().tolist(),
    )


def generateReport(*_, **__):
    raise AssertionError("no report is made of a rollout")


def write_camchain(path, intrinsics, distortion):
    with open(path, "w") as file:
        file.write(f"cam0:\n  distortion_coeffs: {distortion}\n  intrinsics: {intrinsics}\n")
