"""The one exception for mistakes a user can make or mend, on the drone and at its link."""


class DroneError(ValueError):
    """Something handed in or connected cannot be used; a sentence says what to do."""
