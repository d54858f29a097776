"""The libraries that read schemas: loaded when they are needed, and asked for by name when they are missing."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sealane.errors import MissingExtra


def jsonschema() -> Any:
    """Raises `MissingExtra`."""
    try:
        import jsonschema_rs
    except ImportError:
        raise MissingExtra("JSON Schemas", "jsonschema-rs", "server") from None
    return jsonschema_rs


def avro_schemas() -> tuple[ModuleType, ModuleType]:
    """The modules that read Avro schemas, and that compare them. Raises `MissingExtra`."""
    try:
        import avro.compatibility
        import avro.schema
    except ImportError:
        raise MissingExtra("Avro schemas", "avro", "server") from None
    return avro.schema, avro.compatibility


def protobuf() -> tuple[ModuleType, ModuleType, ModuleType]:
    """Descriptors, their pools, and what makes classes of them. Raises `MissingExtra`."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise MissingExtra("Protobuf schemas", "protobuf", "grpc") from None
    return descriptor_pb2, descriptor_pool, message_factory
