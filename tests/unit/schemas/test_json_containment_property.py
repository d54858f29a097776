"""If a JSON Schema may follow another one by our rules, what fitted that fits it: the validator is the judge."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealane.errors import InvalidSchema
from sealane.schemas import incompatibilities
from sealane.schemas.json.json_schema import JsonSchema
from tests.unit.schemas.json_documents import changed, documents, schemas

patient = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def opened(schema: Any) -> JsonSchema | None:
    try:
        return JsonSchema(json.dumps(schema))
    except InvalidSchema:
        return None


def fits(schema: JsonSchema, document: Any) -> bool:
    return schema.check([json.dumps(document).encode()]) is None


@given(st.data())
@patient
def test_what_fits_the_schema_before_fits_one_that_is_backward_compatible(data: st.DataObject) -> None:
    before = data.draw(schemas())
    old, new = opened(before), opened(data.draw(changed(before)))
    if old is None or new is None:
        return
    is_backward = not incompatibilities("backward", old, new)
    is_forward = not incompatibilities("forward", old, new)
    for document in data.draw(st.lists(documents, min_size=20, max_size=20)):
        if is_backward and fits(old, document):
            assert fits(new, document)
        if is_forward and fits(new, document):
            assert fits(old, document)
    assert (is_backward and is_forward) == (not incompatibilities("full", old, new))


@given(schemas())
@patient
def test_every_schema_may_follow_itself(schema: Any) -> None:
    one, same = opened(schema), opened(schema)
    if one is not None and same is not None:
        assert incompatibilities("full", one, same) == []


@given(st.data())
@patient
def test_where_a_document_does_not_fit_is_always_told_and_none_of_its_values(data: st.DataObject) -> None:
    schema = opened(data.draw(schemas()))
    secret = "canary-of-a-value"
    document = data.draw(
        st.recursive(
            st.sampled_from([secret, 1, None]),
            lambda within: st.one_of(st.lists(within, max_size=2), st.dictionaries(st.sampled_from("ab"), within)),
            max_leaves=5,
        )
    )
    if schema is None:
        return
    misfit = schema.check([json.dumps(document).encode()])
    if misfit is not None:
        assert misfit.path.startswith("$")
        assert secret not in misfit.path + misfit.problem
