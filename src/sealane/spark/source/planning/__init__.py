"""On the driver: where a query begins, how far it goes next, and what its tasks read. Without Spark and pure but for
the questions it asks the node.
"""
