def ends(payloads: list[bytes] | tuple[bytes, ...], bytes_max: int, /) -> tuple[bytes, int] | None: ...
def lay_out(
    columns: memoryview,
    id_high: int,
    id_start: int,
    ends: bytes,
    payloads: list[bytes] | tuple[bytes, ...],
    payload_bytes: int,
    created_us: int,
    /,
) -> None: ...
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
