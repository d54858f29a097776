"""Pushing: what carries the messages of webhooks out of the node, by HTTPS.

`pusher.py` has a task for each webhook, `push.py` is one of them: it takes messages (`intake.py`) and sends them
(`sender.py`), over connections whose addresses were looked at (`network.py`). The rules are in `node/webhooks`.
"""
