"""What flies, and what triggers it: the drone's receiver, its LED, and the link to the ground."""

__version__ = "0.1.0"
