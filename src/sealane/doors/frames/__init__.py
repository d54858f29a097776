"""The frames door: a length and as many bytes, from producers and to consumers. `docs/frames.md` tells it all.

`framing.py` is what goes over the line, `connection.py` one connection until its first frame has said what it is;
`producer.py` and `consumer.py` are what it is from then on.
"""
