"""Pulling: messages for whoever has no connection to wait on. They are leased to who shows the lease, until a deadline.

`pull.py` takes messages, `ticket.py` is the lease as its holder has it, `held.py` is what the holder does about them.
`pieces.py` is a pull that is sent a part at a time, `opened.py` counts what a taker of several has still to answer for.
"""
