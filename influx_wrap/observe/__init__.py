"""From pixels to observations: frames in, corners found, keyframes chosen."""
