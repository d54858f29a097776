"""`/api/v1/ws`: publishing and consuming over one WebSocket. `docs/websocket.md` has all that can be said.

`opening.py` is the request that begins it, `connection.py` the frames, `messages.py` and `formats.py` what is said in
them, `conversation.py` what follows from it, `consumer.py` and `holdings.py` one consumer; `conversations.py` has all
connections of the door.
"""
