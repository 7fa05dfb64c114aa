"""Who does the calibrating: our own calibrator, or a real Kalibr, behind one interface."""
