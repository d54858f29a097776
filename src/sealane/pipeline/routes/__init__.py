"""Learned routes: from what nodes tell of the ways to each other, how much each of them should get.

Telemetry comes in by the minute; Spark makes of it what there was of each node in each hour; curves are fitted to that,
and the weights are the solution of a convex problem. All but the first step is pure, so it is tested without Spark.
"""
