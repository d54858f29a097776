"""For tests of code that uses Sealane: a broker inside the test's process, as a pytest fixture.

With Sealane installed the fixtures are there by themselves; see `sealane.testing.plugin`:

    async def test_an_order_is_billed(sealane_lane):
        await sealane_lane.publish("orders", b"42")
        ...

This package itself needs no pytest: only the plugin, which pytest loads, does.
"""
