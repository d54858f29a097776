/** What a consumer is handed: a message, or a batch of them. */
import { secondsOf } from "./durations.js";
import type { Message as Arrived } from "./generated/swarmmq.js";
import type { Lease, NackOptions } from "./lease.js";

export class Message {
  readonly id: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly payload: Buffer;
  /** Undefined when it has none. */
  readonly key: Buffer | undefined;
  /** Empty when it has none. */
  readonly headers: Readonly<Record<string, string>>;
  readonly priority: number;
  /** When it was published, by the node's clock. */
  readonly created: Date;
  /** Who published it, as the node knows it. */
  readonly producer: string;
  /** From 1. */
  readonly attempt: number;
  /** Seconds that were left of its time to live when it was taken. */
  readonly ttl: number | undefined;
  /** Of a payload that is sealed end to end, as it is here: who may open it. Undefined when it is not sealed. */
  readonly envelope: Buffer | undefined;
  readonly #lease: Lease;

  /** Made by the client. */
  constructor(lease: Lease, arrived: Arrived) {
    this.#lease = lease;
    this.id = arrived.id;
    this.topic = arrived.destination;
    this.partition = arrived.partition;
    this.offset = arrived.offset;
    this.payload = arrived.payload;
    this.key = arrived.key.length > 0 ? arrived.key : undefined;
    this.headers = arrived.headers;
    this.priority = arrived.priority;
    this.created = arrived.timestamp ?? new Date(0);
    this.producer = arrived.producerId;
    this.attempt = arrived.retries + 1;
    this.ttl = arrived.ttl === undefined ? undefined : secondsOf(arrived.ttl);
    this.envelope = arrived.envelope.length > 0 ? arrived.envelope : undefined;
  }

  /** The payload as UTF-8 text. */
  text(): string {
    return this.payload.toString("utf8");
  }

  /**
   * It is done. Resolves when that is durable: from then on it never comes again on this subscription. Acks that are
   * given side by side travel together.
   */
  ack(): Promise<void> {
    return this.#lease.ack([this.id]);
  }

  /** It failed: it comes again after a while, or goes to the dead letters. Resolves when that is durable. */
  nack(options: NackOptions = {}): Promise<void> {
    return this.#lease.nack([this.id], options);
  }

  /** Keep it, and all messages that were taken with it, for so long from now on. Resolves with the new deadline. */
  extend(seconds: number): Promise<Date> {
    return this.#lease.extend(seconds);
  }
}

/** Messages that were taken together, to be answered together or one by one. */
export class MessageBatch {
  readonly messages: readonly Message[];
  readonly #lease: Lease;

  /** Made by the client. */
  constructor(lease: Lease) {
    this.#lease = lease;
    this.messages = lease.arrived.map((arrived) => new Message(lease, arrived));
  }

  get length(): number {
    return this.messages.length;
  }

  /** All are done, but for those that were given back by themselves. Resolves when that is durable. */
  ack(): Promise<void> {
    return this.#lease.ack(this.#lease.answerable("ack"));
  }

  /** All failed, but for those that were acknowledged by themselves. Resolves when that is durable. */
  nack(options: NackOptions = {}): Promise<void> {
    return this.#lease.nack(this.#lease.answerable("nack"), options);
  }

  /** Keep all of them for so long from now on. Resolves with the new deadline. */
  extend(seconds: number): Promise<Date> {
    return this.#lease.extend(seconds);
  }
}
