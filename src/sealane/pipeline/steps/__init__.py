"""The steps of the pipeline: each takes in what is new, as micro-batches of a Spark query of its own, and ends.

A step that was killed is done again by the next one under the same number: its checkpoint says from where to where, and
the lake's log whether it had come in.
"""
