/** Messages on their way out: checked here where the wire could not tell what was meant, by the node in all else. */
import { durationOf } from "./durations.js";
import { InvalidArgument } from "./errors.js";
import type { SendMessageRequest } from "./generated/swarmmq.js";
import { isId, newId } from "./ids.js";

/** Text is sent as UTF-8. */
export type Bytes = string | Uint8Array;

export interface PublishOptions {
  /** Messages of a key are stored in one partition, in order. */
  key?: Bytes;
  headers?: Readonly<Record<string, string>>;
  /** 1 to 10; the highest comes first. By default 5. */
  priority?: number;
  /** Seconds it may wait to be delivered. */
  ttl?: number;
  /** Seconds it stays hidden. */
  delay?: number;
  /** A UUID. A repeated one is stored once. By default the client makes one. */
  id?: string;
}

/** A message with more than a payload, for `publishMany`. */
export interface OutgoingMessage extends PublishOptions {
  payload: Bytes;
}

export function requestOf(topic: string, payload: Bytes, options: PublishOptions): SendMessageRequest {
  const { key, headers, priority, ttl, delay, id } = options;
  return {
    message: {
      // Always given, so that sending it again after a lost connection stores it once.
      id: id === undefined ? newId() : checkedId(id),
      payload: bytesOf(payload, "payload"),
      destination: topic,
      priority: priority === undefined ? 0 : checkedPriority(priority),
      key: key === undefined ? NOTHING : checkedKey(key),
      headers: headers === undefined ? {} : checkedHeaders(headers),
      ttl: ttl === undefined ? undefined : durationOf(checkedSeconds(ttl, "ttl")),
      delay: delay === undefined || delay === 0 ? undefined : durationOf(checkedSeconds(delay, "delay")),
      timestamp: undefined,
      producerId: "",
      retries: 0,
      routeHistory: [],
      checksum: "",
      partition: 0,
      offset: 0,
      envelope: NOTHING,
    },
  };
}

const NOTHING = Buffer.alloc(0);

/** Seconds that fit the wire's durations: about ten thousand years. */
const SECONDS_MAX = 315_576_000_000;

function bytesOf(value: Bytes, what: string): Buffer {
  if (typeof value === "string") {
    return Buffer.from(value, "utf8");
  }
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  throw new InvalidArgument(`${what}: ${typeof value} is neither a string nor a Uint8Array; encode it first`);
}

function checkedKey(key: Bytes): Buffer {
  const bytes = bytesOf(key, "key");
  if (bytes.length === 0) {
    throw new InvalidArgument("key: is empty, which is no key; leave it out");
  }
  return bytes;
}

function checkedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== "string") {
      throw new InvalidArgument(`headers: the value of ${JSON.stringify(name)} is not a string; write it as one`);
    }
  }
  return { ...headers };
}

function checkedPriority(priority: number): number {
  if (!(Number.isInteger(priority) && priority >= 1 && priority <= 10)) {
    throw new InvalidArgument(`priority: ${priority} is not a whole number in 1 to 10`);
  }
  return priority;
}

export function checkedSeconds(seconds: number, what: string): number {
  if (!(seconds >= 0 && seconds <= SECONDS_MAX)) {
    throw new InvalidArgument(`${what}: ${seconds} is not a number of seconds from 0 on`);
  }
  return seconds;
}

function checkedId(id: string): string {
  if (!isId(id)) {
    throw new InvalidArgument(`id: ${JSON.stringify(id)} is not a UUID`);
  }
  return id;
}
