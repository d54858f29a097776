"""The names of options: which there are, what for, and which one was meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from sealane.spark.errors import InvalidOption
from sealane.spark.options.access import ACCESS_OPTIONS

STREAM_OPTIONS = frozenset({"maxMessagesPerTrigger", "subscription"})
"""Of reading, for streams alone."""
BATCH_OPTIONS = frozenset({"endingOffsets", "endingTimestamp"})
"""Of reading, for what has an end."""
READ_OPTIONS = (
    STREAM_OPTIONS
    | BATCH_OPTIONS
    | {
        *("startingOffsets", "startingTimestamp", "minPartitions", "failOnDataLoss"),
        *("decryptionKeys", "valueFormat", "valueSchema", "valueSchemaFrom", "log"),
    }
)
WRITE_OPTIONS = frozenset({"columns", "transaction", "sealFor"})
SHARED_OPTIONS = ACCESS_OPTIONS | {"topic"}
SPARK_OPTIONS = frozenset(
    {
        *("path", "paths", "checkpointLocation", "queryName", "outputMode"),
        *("asyncProgressTrackingEnabled", "asyncProgressTrackingCheckpointIntervalMs"),
        "asyncProgressTrackingOverrideSinkSupportCheck",
    }
)
"""What Spark puts among a source's options for itself."""

_KNOWN = {name.lower(): name for name in READ_OPTIONS | WRITE_OPTIONS | SHARED_OPTIONS | SPARK_OPTIONS}


def check_names(options: Mapping[str, str]) -> None:
    """Raise `InvalidOption` for an option that neither the source nor the sink has."""
    for name in options:
        if name.lower() not in _KNOWN:
            ours = sorted(set(_KNOWN.values()) - SPARK_OPTIONS)
            near = difflib.get_close_matches(name.lower(), [known.lower() for known in ours], n=1)
            hint = f"did you mean {_KNOWN[near[0]]!r}?" if near else f"there are {', '.join(ours)}"
            raise InvalidOption(name, f"there is no such option; {hint}")


def named(options: Mapping[str, str]) -> dict[str, str]:
    """The options under the names that they really have, since Spark folds their case. Raises as `check_names` does."""
    check_names(options)
    return {_KNOWN[name.lower()]: text for name, text in options.items()}
