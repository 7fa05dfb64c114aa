"""Stand-in for what the modules of the series use of Kalibr's ``aslam_cv``."""


class GridCalibrationTargetBase:
    def __init__(self, rows, cols):
        self.n_points = rows * cols

    def size(self):
        return self.n_points


class Time:
    def __init__(self, seconds):
        self.seconds = seconds


class GridCalibrationTargetObservation:
    """Keeps what it is told, and the size of a picture that is cleared."""

    def __init__(self, target):
        self._target = target
        self.pixels = {}
        self.image_size = self.time = None

    def target(self):
        return self._target

    def setImage(self, picture):
        self.image_size = picture.shape[::-1]

    def clearImage(self):
        pass

    def setTime(self, time):
        self.time = time

    def updateImagePoint(self, index, pixel):
        self.pixels[index] = pixel

    def imagePoint(self, index):
        return index in self.pixels, self.pixels.get(index)
