"""Commands under Kalibr's names, with Kalibr's options, for command lines that exist already."""
