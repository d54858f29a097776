"""Following a topic: all of its messages, in the order in which they are stored, for readers without a subscription.

`position.py` is where a reader is, as a text that it keeps; `follower.py` reads on from there, and
`partition_reader.py` knows what it has passed over in one partition.
"""
