"""Webhooks: subscriptions whose messages are pushed to a URL. Data and rules; what does it is the room `push`.

`records.py` is a webhook as it is kept, `webhooks.py` all of a node's; `endpoints.py` and `hosts.py` say where one may
point, `signing.py` how a request is signed, `breaker.py` and `verdicts.py` what follows from how it was answered.
"""
