"""What Prometheus is told of webhooks."""

from __future__ import annotations

from pathlib import Path

from sealane.server.metrics import Metrics
from tests.integration.webhooks.pushing import Pushing, pushing
from tests.integration.webhooks.receiver import receiver, status
from tests.unit.node.running_node import until


def lines(run: Pushing, name: str) -> dict[str, float]:
    """By the one label."""
    text = Metrics(run.node).render()[0].decode()
    found = (line.removeprefix(name) for line in text.splitlines() if line.startswith(f"{name}{{"))
    return {label.split('"')[1]: float(value) for label, value in (line.split(" ") for line in found)}


async def test_requests_messages_and_states_are_counted_and_no_webhook_is_named(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path, open_seconds=3_600, open_seconds_max=3_600) as run:
        hook.answer = lambda received: status(500 if received.target == "/broken" else 200)
        await run.create(hook.url(), messages_max=10)
        await run.create(hook.url(path="/broken"), "broken")
        await run.create(hook.url(), "paused")
        await run.ask("pause", "paused")
        await run.lane.publish_many("orders", [b"x"] * 10)
        await run.until_settled()
        await hook.until(lambda: sum(each.target == "/broken" for each in hook.received) == 5)
        await until(lambda: lines(run, "sealane_webhooks")["open"] == 1)
        requests, messages = lines(run, "sealane_webhook_requests_total"), lines(run, "sealane_webhook_messages_total")
        assert lines(run, "sealane_webhooks") == {"closed": 1, "open": 1, "half-open": 0, "paused": 1, "broken": 0}
        assert requests == {"2xx": len(hook.received) - 5, "5xx": 5}
        assert messages == {"acked": 10, "nacked": 5}
        assert f"sealane_webhook_seconds_count {sum(requests.values())}" in Metrics(run.node).render()[0].decode()


async def test_where_webhooks_are_off_nothing_is_told_of_them(tmp_path: Path) -> None:
    async with pushing(tmp_path, hosts=" ") as run:
        assert lines(run, "sealane_webhooks") == {}
