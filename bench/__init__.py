"""Benchmarks: what Sealane does in a second, with the command, the machine and the noise beside the figure."""
