"""The http door: health, readiness and metrics for those who watch a node. `door.py` is its front."""
