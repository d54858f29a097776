"""The schema registry: what payloads of a topic look like."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer, moment
from sealane.doors.http.authenticating import session_of
from sealane.errors import InvalidArgument
from sealane.message import check_name

routes = APIRouter(prefix="/schemas", tags=["schemas"])

Compatibility = Literal["backward", "forward", "full", "none"]
Version = Annotated[str, Path(json_schema_extra={"pattern": "^(latest|[1-9][0-9]{0,8})$"})]


class GivenSchema(shapes.Shape):
    """`schema` is the text of the schema; of Arrow, an IPC schema message in base64."""

    model_config = shapes.example(
        format="json",
        schema='{"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}}',
    )

    text: Annotated[str, Field(alias="schema")]
    format: Literal["json", "avro", "protobuf", "arrow"] = "json"
    message: Annotated[str | None, Field(description="Of Protobuf: which message payloads are.")] = None
    compatibility: Compatibility | None = None

    def arguments(self, topic: str) -> dict[str, Any]:
        return {"topic": topic, **self.model_dump(exclude_none=True, by_alias=True)}


class RegisteredSchema(GivenSchema):
    validated: Annotated[bool | None, Field(alias="validate", description="Whether publishes are checked.")] = None


class SchemaSettings(shapes.Shape):
    model_config = shapes.example(compatibility="full")

    compatibility: Compatibility | None = None
    validated: Annotated[bool | None, Field(alias="validate")] = None


class SchemaShape(shapes.Shape):
    """One version. `id` is the node's own number for it, which rides with every batch."""

    topic: str
    version: int
    id: int
    format: str
    message: str | None
    compatibility: str
    validated: Annotated[bool, Field(alias="validate")]
    registered: str
    by: str
    text: Annotated[str | None, Field(alias="schema")] = None
    versions: Annotated[int | None, Field(description="How many there are, where only the latest is told of.")] = None
    new: bool | None = None
    compiled: Annotated[str | None, Field(description="Of Protobuf: its descriptors, in base64.")] = None


class Schemas(shapes.Shape):
    schemas: list[SchemaShape]


class SchemaVerdict(shapes.Shape):
    """`version`: which one it is already, if it is registered."""

    topic: str
    compatible: bool
    problems: list[str]
    version: int | None


class RemovedSchemas(shapes.Shape):
    topic: str
    removed: Annotated[list[int], Field(description="Their versions.")]


@routes.get("", summary="The schemas of a domain", responses=describing.answers(200, Schemas))
async def list_schemas(request: Request, domain: shapes.ListedDomain) -> Response:
    """The latest of each topic."""
    session = await session_of(request)
    check_name("domain", domain, session.limits, system=True)
    found = await session.administer("schema.list", {})
    return answer({"schemas": [_schema_json(each) for each in found if each["topic"].startswith(f"{domain}/")]})


@routes.get("/{topic}", summary="All versions of a topic's schema", responses=describing.answers(200, Schemas))
async def list_versions(request: Request, domain: shapes.PathName, topic: shapes.PathName) -> Response:
    found = await (await session_of(request)).administer("schema.list", {"topic": f"{domain}/{topic}"})
    return answer({"schemas": [_schema_json(each) for each in found]})


@routes.post(
    "/{topic}",
    summary="Register a schema",
    responses=describing.answers(200, SchemaShape, also=(409, 413, 501))
    | {201: {"description": "Registered.", "model": SchemaShape}},
)
async def register(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, given: RegisteredSchema
) -> Response:
    """As the next version: 201. The same again is the version that it is: 200. One that is not compatible: 409."""
    arguments = given.arguments(f"{domain}/{topic}")
    found = await (await session_of(request)).administer("schema.register", arguments)
    return answer(_schema_json(found), 201 if found["new"] else 200)


@routes.post(
    "/{topic}/check", summary="Whether a schema could be registered", responses=describing.answers(200, SchemaVerdict)
)
async def check(request: Request, domain: shapes.PathName, topic: shapes.PathName, given: GivenSchema) -> Response:
    return answer(await (await session_of(request)).administer("schema.check", given.arguments(f"{domain}/{topic}")))


@routes.patch("/{topic}", summary="Change how a topic is checked", responses=describing.answers(200, SchemaShape))
async def configure(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, given: SchemaSettings
) -> Response:
    arguments = {"topic": f"{domain}/{topic}", **given.model_dump(exclude_none=True, by_alias=True)}
    return answer(_schema_json(await (await session_of(request)).administer("schema.configure", arguments)))


@routes.get("/{topic}/versions/{version}", summary="A schema", responses=describing.answers(200, SchemaShape))
async def show(request: Request, domain: shapes.PathName, topic: shapes.PathName, version: Version) -> Response:
    """With its text. `latest` is a version too."""
    arguments = {"topic": f"{domain}/{topic}", "version": _number(version)}
    return answer(_schema_json(await (await session_of(request)).administer("schema.show", arguments)))


@routes.delete("/{topic}", summary="Remove all schemas of a topic", responses=describing.answers(200, RemovedSchemas))
async def remove(request: Request, domain: shapes.PathName, topic: shapes.PathName) -> Response:
    """What is stored stays; what is published is not checked any more."""
    return answer(await (await session_of(request)).administer("schema.remove", {"topic": f"{domain}/{topic}"}))


@routes.delete(
    "/{topic}/versions/{version}", summary="Remove one version", responses=describing.answers(200, RemovedSchemas)
)
async def remove_version(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, version: Version
) -> Response:
    number = _number(version)
    if number is None:
        raise InvalidArgument("version", "name the number: which one is the latest may have changed meanwhile")
    arguments = {"topic": f"{domain}/{topic}", "version": number}
    return answer(await (await session_of(request)).administer("schema.remove", arguments))


def _number(version: str) -> int | None:
    """None: the latest."""
    if version == "latest":
        return None
    if not version.isdecimal() or len(version) > 9:
        raise InvalidArgument("version", f"{version[:32]!r} is neither a number nor 'latest'")
    return int(version)


def _schema_json(found: dict[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in found.items() if name != "registered_us"}, **_registered(found)}


def _registered(found: dict[str, Any]) -> dict[str, str]:
    return {"registered": moment(found["registered_us"])}
