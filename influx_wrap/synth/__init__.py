"""The rig, simulated: experiments whose answer is known."""
