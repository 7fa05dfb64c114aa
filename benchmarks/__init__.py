"""What the calibrator is measured by: speed, accuracy, agreement with a real Kalibr."""
