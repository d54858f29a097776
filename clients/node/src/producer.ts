/** A producer: one message at a time at the speed of a stream, with back-pressure, in order, each stored once. */
import type { Calls } from "./calls.js";
import { Closed } from "./errors.js";
import { type Bytes, type PublishOptions, requestOf } from "./outgoing.js";
import { Pipeline } from "./pipeline.js";

export interface ProducerOptions {
  /** Seconds without an answer of the node, all tries together, until it is given up. By default the lane's, 30. */
  timeout?: number;
}

/**
 * `send` returns once the message is on its way; `flush`, `close`, or leaving an `await using` block, when all are
 * durable. A failure is thrown by the next of these; nothing that was sent after the failed message is stored then.
 */
export class Producer {
  readonly #pipeline: Pipeline;
  readonly #onClose: (producer: Producer) => void;
  #isClosed = false;

  /** Made by `Lane.producer`. */
  constructor(
    calls: Calls,
    readonly topic: string,
    options: ProducerOptions,
    onClose: (producer: Producer) => void,
  ) {
    this.#onClose = onClose;
    this.#pipeline = new Pipeline(calls, options.timeout ?? calls.timeoutSeconds);
  }

  /** Waits only while the node is behind. */
  async send(payload: Bytes, options: PublishOptions = {}): Promise<void> {
    this.#checkOpen();
    const request = requestOf(this.topic, payload, options);
    await this.#pipeline.room();
    this.#checkOpen();
    this.#pipeline.add(request, ignore);
  }

  /** Return when everything sent so far is durable. */
  async flush(): Promise<void> {
    await this.#pipeline.flush();
  }

  /** Flush, and take no more. */
  async close(): Promise<void> {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    try {
      await this.#pipeline.flush();
    } finally {
      this.#pipeline.end();
      this.#onClose(this);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #checkOpen(): void {
    if (this.#isClosed) {
      throw new Closed("the producer is closed");
    }
  }
}

function ignore(): void {}
