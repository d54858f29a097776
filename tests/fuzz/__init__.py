"""Fuzz targets: each throws hostile bytes at one decoder, and runs by itself or under a coverage-guided fuzzer."""
