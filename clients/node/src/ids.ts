/** Ids of messages: UUIDs of version 7, which sort in the order in which this process has made them. */
import { randomFillSync } from "node:crypto";

const POOL_BYTES = 4096;
/** Random bytes of an id: what is neither time, counter, version nor variant. */
const TAIL_BYTES = 8;
/** Of the counter, which has 12 bits. It starts anywhere in the lower half, so that there is room to count. */
const COUNTER_STOP = 0x1000;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;
let lastMillisecond = 0;
let counter = 0;

export function newId(): string {
  if (used + TAIL_BYTES > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const tail = pool.subarray(used, used + TAIL_BYTES);
  used += TAIL_BYTES;

  const now = Date.now();
  if (now > lastMillisecond) {
    lastMillisecond = now;
    counter = tail.readUInt16BE(0) % (COUNTER_STOP / 2);
  } else if (++counter === COUNTER_STOP) {
    // More than the counter holds, or a clock that went back: the time of ids goes on by itself.
    lastMillisecond += 1;
    counter = 0;
  }
  const time = lastMillisecond.toString(16).padStart(12, "0");
  const version = (0x7000 | counter).toString(16);
  const variant = ((tail.readUInt16BE(0) & 0x3fff) | 0x8000).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}-${tail.toString("hex", 2)}`;
}

export function isId(text: string): boolean {
  return UUID.test(text);
}
