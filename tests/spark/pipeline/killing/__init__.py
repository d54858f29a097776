"""The pipeline is killed at every step of every commit, and started again."""
