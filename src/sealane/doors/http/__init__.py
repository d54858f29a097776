"""The http door. `door.py` is its front; `api/` is what can be asked for, `event_stream.py` and `websocket/` are live,
and `watching.py` is for those who watch a node.
"""
