import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Message(_message.Message):
    __slots__ = ("id", "payload", "destination", "priority", "timestamp", "producer_id", "ttl", "retries", "route_history", "checksum", "key", "headers", "delay", "partition", "offset", "envelope")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    ROUTE_HISTORY_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    id: str
    payload: bytes
    destination: str
    priority: int
    timestamp: _timestamp_pb2.Timestamp
    producer_id: str
    ttl: _duration_pb2.Duration
    retries: int
    route_history: _containers.RepeatedScalarFieldContainer[str]
    checksum: str
    key: bytes
    headers: _containers.ScalarMap[str, str]
    delay: _duration_pb2.Duration
    partition: int
    offset: int
    envelope: bytes
    def __init__(self, id: _Optional[str] = ..., payload: _Optional[bytes] = ..., destination: _Optional[str] = ..., priority: _Optional[int] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., producer_id: _Optional[str] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retries: _Optional[int] = ..., route_history: _Optional[_Iterable[str]] = ..., checksum: _Optional[str] = ..., key: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, str]] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., envelope: _Optional[bytes] = ...) -> None: ...

class SendMessageRequest(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: Message
    def __init__(self, message: _Optional[_Union[Message, _Mapping]] = ...) -> None: ...

class SendMessageResponse(_message.Message):
    __slots__ = ("id", "partition", "offset")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    id: str
    partition: int
    offset: int
    def __init__(self, id: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class PullMessagesRequest(_message.Message):
    __slots__ = ("destination", "subscription", "max_messages", "wait", "follow")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    destination: str
    subscription: str
    max_messages: int
    wait: _duration_pb2.Duration
    follow: bool
    def __init__(self, destination: _Optional[str] = ..., subscription: _Optional[str] = ..., max_messages: _Optional[int] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., follow: _Optional[bool] = ...) -> None: ...

class PullMessagesResponse(_message.Message):
    __slots__ = ("lease", "deadline", "messages")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    lease: str
    deadline: _timestamp_pb2.Timestamp
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    def __init__(self, lease: _Optional[str] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...

class PullBatchResponse(_message.Message):
    __slots__ = ("lease", "deadline", "arrow")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    ARROW_FIELD_NUMBER: _ClassVar[int]
    lease: str
    deadline: _timestamp_pb2.Timestamp
    arrow: bytes
    def __init__(self, lease: _Optional[str] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., arrow: _Optional[bytes] = ...) -> None: ...

class AckMessageRequest(_message.Message):
    __slots__ = ("destination", "subscription", "lease", "ids")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    destination: str
    subscription: str
    lease: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, destination: _Optional[str] = ..., subscription: _Optional[str] = ..., lease: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ...) -> None: ...

class AckMessageResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NackMessageRequest(_message.Message):
    __slots__ = ("destination", "subscription", "lease", "ids", "delay", "reason")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    destination: str
    subscription: str
    lease: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    delay: _duration_pb2.Duration
    reason: str
    def __init__(self, destination: _Optional[str] = ..., subscription: _Optional[str] = ..., lease: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class NackMessageResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExtendLeaseRequest(_message.Message):
    __slots__ = ("destination", "subscription", "lease", "duration")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    destination: str
    subscription: str
    lease: str
    duration: _duration_pb2.Duration
    def __init__(self, destination: _Optional[str] = ..., subscription: _Optional[str] = ..., lease: _Optional[str] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExtendLeaseResponse(_message.Message):
    __slots__ = ("deadline",)
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    deadline: _timestamp_pb2.Timestamp
    def __init__(self, deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PublishBatchRequest(_message.Message):
    __slots__ = ("destination", "arrow")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    ARROW_FIELD_NUMBER: _ClassVar[int]
    destination: str
    arrow: bytes
    def __init__(self, destination: _Optional[str] = ..., arrow: _Optional[bytes] = ...) -> None: ...

class PublishBatchResponse(_message.Message):
    __slots__ = ("messages", "placed")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    messages: int
    placed: _containers.RepeatedCompositeFieldContainer[Placed]
    def __init__(self, messages: _Optional[int] = ..., placed: _Optional[_Iterable[_Union[Placed, _Mapping]]] = ...) -> None: ...

class Placed(_message.Message):
    __slots__ = ("partition", "first_offset", "count")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    partition: int
    first_offset: int
    count: int
    def __init__(self, partition: _Optional[int] = ..., first_offset: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HealthResponse(_message.Message):
    __slots__ = ("status", "node_id", "version", "problems", "uptime")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[HealthResponse.Status]
        SERVING: _ClassVar[HealthResponse.Status]
        NOT_SERVING: _ClassVar[HealthResponse.Status]
    STATUS_UNSPECIFIED: HealthResponse.Status
    SERVING: HealthResponse.Status
    NOT_SERVING: HealthResponse.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    UPTIME_FIELD_NUMBER: _ClassVar[int]
    status: HealthResponse.Status
    node_id: str
    version: str
    problems: _containers.RepeatedScalarFieldContainer[str]
    uptime: _duration_pb2.Duration
    def __init__(self, status: _Optional[_Union[HealthResponse.Status, str]] = ..., node_id: _Optional[str] = ..., version: _Optional[str] = ..., problems: _Optional[_Iterable[str]] = ..., uptime: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
