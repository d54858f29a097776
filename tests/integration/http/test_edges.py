"""What holds for every request: under which name it comes, its id, packed answers, the page that describes it all."""

from __future__ import annotations

import json

import msgspec
import pytest

from sealane.doors.http.api import shapes
from sealane.doors.http.hosts import is_loopback
from sealane.doors.http.message_shape import GivenMessage
from tests.http_node import HttpNode


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "::1"])
def test_names_of_the_loopback_are_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"])
def test_other_names_are_not(host: str) -> None:
    assert not is_loopback(host)


async def test_a_page_that_has_its_name_lead_here_is_refused(node: HttpNode) -> None:
    refused = await node.http.get("/topics", headers={"host": "evil.example"})
    assert refused.status_code == 421
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("given", "kept"), [("order-42", True), ("x" * 128, True), ("x" * 129, False), ("a b", False)])
async def test_a_request_keeps_the_id_it_comes_with_if_that_can_be_one(node: HttpNode, given: str, kept: bool) -> None:
    answer = await node.http.get("/topics", headers={"x-request-id": given})
    assert (answer.headers["x-request-id"] == given) is kept


async def test_requests_without_an_id_get_one_of_their_own(node: HttpNode) -> None:
    ids = {(await node.http.get("/topics")).headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3


async def test_long_answers_are_packed_for_who_accepts_that(node: HttpNode) -> None:
    await node.publish("t", *["hello " * 10] * 50)
    path = "/topics/t/partitions/0/messages"
    packed = await node.http.get(path, headers={"accept-encoding": "gzip"})
    plain = await node.http.get(path, headers={"accept-encoding": "identity"})
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 4
    assert packed.json() == plain.json()
    assert "content-encoding" not in plain.headers
    unwanted = await node.http.get(path, headers={"accept-encoding": "gzip;q=0, identity"})
    assert "content-encoding" not in unwanted.headers


async def test_the_page_of_documentation_has_every_operation_and_loads_nothing(node: HttpNode) -> None:
    root = str(node.http.base_url).partition("/api")[0]
    page = await node.http.get(f"{root}/docs")
    document = (await node.http.get(f"{root}/openapi.json")).json()
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for path in document["paths"]:
        assert path in page.text
    assert "<script" not in page.text
    assert "src=" not in page.text


def test_a_message_is_described_as_it_is_read() -> None:
    assert list(shapes.GivenMessage.model_fields) == [field.name for field in msgspec.structs.fields(GivenMessage)]


async def test_every_reference_of_the_openapi_document_leads_somewhere(node: HttpNode) -> None:
    root = str(node.http.base_url).partition("/api")[0]
    text = (await node.http.get(f"{root}/openapi.json")).text
    document = json.loads(text)
    named = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    referred = {each.split('"')[0] for each in text.split('"$ref":"')[1:]}
    assert referred <= named
