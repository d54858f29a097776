"""Staging: batches are kept, durable and unseen, until they are published together, once.

Whoever writes in parallel, as the tasks of a Spark job do, stages batches in *parts*, one part a writer; then one of
them, who knows all parts, publishes them under a transaction's id. Until then nobody can read them, and parts of
writers that have failed are never published.

Staged batches are in a system topic of the domain of the topic that they are for, and so under that domain's key. What
fits into one step (`staging.step_bytes`) becomes visible in one commit, with the note that the transaction is done.
A larger publish takes several: its first step also says, durably, that it is *decided*, and from then on it goes on
until it is complete, over restarts too, each step in one commit with how far it has come.
"""

from sealane.node.staging.staging import Staging

__all__ = ["Staging"]
