"""A seeded simulator: the real broker on a virtual clock and a simulated disk, with faults, checked by oracles."""
