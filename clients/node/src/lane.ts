/** A lane: a program's connection to a node. Everything starts from here. */
import type { CallOptions, Calls } from "./calls.js";
import {
  batchesOf,
  type ConsumeBatchesOptions,
  type ConsumeOptions,
  checkedCount,
  leaving,
  messagesOf,
} from "./consuming.js";
import { InvalidArgument, SealaneError } from "./errors.js";
import { SwarmMQService } from "./generated/swarmmq.js";
import { type Health, healthOf } from "./health.js";
import { Inbox } from "./inbox.js";
import type { Message, MessageBatch } from "./message.js";
import { type Bytes, type OutgoingMessage, type PublishOptions, requestOf } from "./outgoing.js";
import { Pipeline } from "./pipeline.js";
import { Producer, type ProducerOptions } from "./producer.js";
import type { Receipt } from "./receipt.js";

const CLOSE_SECONDS = 5;
const PREFETCH_DEFAULT = 100;
const BATCH_DEFAULT = 1_000;

export class Lane {
  // Private to the language too: a lane that is written to a log shows no credential.
  readonly #calls: Calls;
  readonly #inboxes = new Set<Inbox>();
  readonly #producers = new Set<Producer>();
  #closing: Promise<void> | undefined;

  /** Made by `connect`. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Returns when the message is durable. A repeated `id` is stored once and gets the first one's receipt. */
  async publish(topic: string, payload: Bytes, options: PublishOptions & CallOptions = {}): Promise<Receipt> {
    const request = requestOf(topic, payload, options);
    const { id, partition, offset } = await this.#calls.unary(SwarmMQService.sendMessage, request, options);
    return { id, partition, offset };
  }

  /**
   * Publish payloads, or messages with more than that, one behind the other on a stream. Returns when all are durable.
   * If one is refused nothing behind it is stored; the error's `receipts` are those of the ones before it.
   */
  async publishMany(
    topic: string,
    messages: Iterable<Bytes | OutgoingMessage> | AsyncIterable<Bytes | OutgoingMessage>,
    options: CallOptions = {},
  ): Promise<Receipt[]> {
    const receipts: Receipt[] = [];
    const pipeline = new Pipeline(this.#calls, options.timeout ?? this.#calls.timeoutSeconds, options.signal);
    const publishing = async () => {
      for await (const message of messages) {
        const { payload, ...rest } = isPayload(message) ? { payload: message } : message;
        const request = requestOf(topic, payload, rest);
        await pipeline.room();
        pipeline.add(request, (receipt) => receipts.push(receipt));
      }
      await pipeline.flush();
    };
    try {
      await this.#calls.track(publishing());
      return receipts;
    } catch (error) {
      if (error instanceof SealaneError) {
        error.receipts = receipts;
      }
      throw error;
    } finally {
      pipeline.end();
    }
  }

  /** A pipelined producer: `await producer.send("…")`, and `await producer.flush()` when all should be durable. */
  producer(topic: string, options: ProducerOptions = {}): Producer {
    this.#calls.checkOpen();
    const producer = new Producer(this.#calls, topic, options, (closed) => this.#producers.delete(closed));
    this.#producers.add(producer);
    return producer;
  }

  /** Messages one by one: `for await (const message of lane.consume("orders", { subscription: "billing" }))`. */
  consume(topic: string, options: ConsumeOptions): AsyncGenerator<Message, void, void> {
    const inbox = this.#inbox(topic, options, checkedCount(options.prefetch ?? PREFETCH_DEFAULT, "prefetch"));
    return leaving(inbox, messagesOf(inbox), options.signal, this.#inboxes);
  }

  /** Messages as they come together, to be answered together. */
  consumeBatches(topic: string, options: ConsumeBatchesOptions): AsyncGenerator<MessageBatch, void, void> {
    const inbox = this.#inbox(topic, options, checkedCount(options.messagesMax ?? BATCH_DEFAULT, "messagesMax"));
    return leaving(inbox, batchesOf(inbox), options.signal, this.#inboxes);
  }

  /** Whether the node serves. */
  async health(options: CallOptions = {}): Promise<Health> {
    return healthOf(await this.#calls.unary(SwarmMQService.getNodeHealth, {}, options));
  }

  /**
   * End the loops, flush the producers, wait for what is under way, at most 5 s, and close the connection. Messages
   * that were handed out keep their lease, and cannot be answered any more.
   */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #end(): Promise<void> {
    for (const inbox of this.#inboxes) {
      void this.#calls.track(inbox.leave());
    }
    for (const producer of this.#producers) {
      // Whoever flushes it is told of a failure; there is nobody here to tell.
      void this.#calls.track(producer.close().catch(() => undefined));
    }
    await this.#calls.close(CLOSE_SECONDS);
  }

  #inbox(topic: string, { subscription, retry }: ConsumeOptions, messagesMax: number): Inbox {
    this.#calls.checkOpen();
    if (!subscription) {
      throw new InvalidArgument("subscription: is missing; name who shares the messages, such as billing");
    }
    return new Inbox({ calls: this.#calls, topic, subscription }, messagesMax, retry ?? {});
  }
}

function isPayload(message: Bytes | OutgoingMessage): message is Bytes {
  return typeof message === "string" || message instanceof Uint8Array;
}
