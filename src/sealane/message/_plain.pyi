def ends(payloads: list[bytes] | tuple[bytes, ...], bytes_max: int, /) -> tuple[bytes, int] | None: ...
def between(before: bytes, payloads: list[bytes] | tuple[bytes, ...], payload_bytes: int, after: bytes, /) -> bytes: ...
def is_sound(
    data: memoryview,
    rows: int,
    offsets_at: int,
    times_at: int,
    payload_bytes: int,
    payload_bytes_max: int,
    time_max: int,
    /,
) -> bool: ...
