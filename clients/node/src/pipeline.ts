/**
 * Messages one behind the other on a stream, without a wait for each answer. If the stream is lost, what was not
 * answered is sent again on the next one, in order: their ids make sure that each is stored once.
 */
import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import { onAbort } from "./aborting.js";
import { type Calls, checkedTimeout } from "./calls.js";
import { DeadlineExceeded, type SealaneError, Unavailable } from "./errors.js";
import type { SendMessageRequest, SendMessageResponse } from "./generated/swarmmq.js";
import type { Receipt } from "./receipt.js";
import { Backoff, SOON } from "./retrying.js";
import { Waiters } from "./waiters.js";

/** Unanswered messages at a time: enough for the node to store hundreds with each sync, and no more to repeat. */
const MESSAGES_IN_FLIGHT_MAX = 5_000;
const BYTES_IN_FLIGHT_MAX = 4 * 1024 * 1024;

interface Entry {
  readonly request: SendMessageRequest;
  readonly bytes: number;
  readonly landed: (receipt: Receipt) => void;
}

type Stream = ClientDuplexStream<SendMessageRequest, SendMessageResponse>;

export class Pipeline {
  /** Unanswered ones, oldest first, from `answered` on. */
  private entries: Entry[] = [];
  private answered = 0;
  /** How many of `entries` the stream that is open now has been given. */
  private given = 0;
  private bytes = 0;
  private stream: Stream | undefined;
  private isWaitingToReopen = false;
  private failure: unknown;
  private lastTrouble: unknown;
  private progressAt = 0;
  private watch: NodeJS.Timeout | undefined;
  private readonly changed = new Waiters();
  private readonly backoff = new Backoff(SOON, Number.POSITIVE_INFINITY);
  private readonly timeoutSeconds: number;
  private readonly ended = new AbortController();
  private readonly takeBack: () => void;

  constructor(
    private readonly calls: Calls,
    timeoutSeconds: number,
    signal?: AbortSignal,
  ) {
    this.timeoutSeconds = checkedTimeout(timeoutSeconds);
    signal?.throwIfAborted();
    this.takeBack = onAbort(signal, () => this.fail(signal?.reason));
  }

  /** Return when one more may be added. Throws what went wrong. */
  async room(): Promise<void> {
    while (this.isFull()) {
      this.check();
      await this.changed.wait();
    }
    this.check();
  }

  /** Send it; `landed` is told when it is durable. */
  add(request: SendMessageRequest, landed: (receipt: Receipt) => void): void {
    const bytes = request.message?.payload.length ?? 0;
    if (this.isEmpty()) {
      this.progressAt = performance.now();
      this.watchProgress();
    }
    this.entries.push({ request, bytes, landed });
    this.bytes += bytes;
    this.pump();
  }

  /** Return when all that was added is durable. Throws what went wrong; nothing behind it is stored then. */
  async flush(): Promise<void> {
    while (!this.isEmpty() && this.failure === undefined) {
      await this.changed.wait();
    }
    this.check();
  }

  /** Take no more, and wait for nothing. */
  end(): void {
    clearTimeout(this.watch);
    this.takeBack();
    this.ended.abort();
    const stream = this.stream;
    this.stream = undefined;
    if (this.isEmpty()) {
      stream?.end();
    } else {
      stream?.cancel();
    }
  }

  private isEmpty(): boolean {
    return this.answered === this.entries.length;
  }

  private isFull(): boolean {
    return this.entries.length - this.answered >= MESSAGES_IN_FLIGHT_MAX || this.bytes >= BYTES_IN_FLIGHT_MAX;
  }

  private check(): void {
    if (this.failure !== undefined) {
      throw this.failure;
    }
  }

  private fail(error: unknown): void {
    if (this.failure === undefined) {
      this.failure = error ?? new Unavailable("the stream was lost");
      this.end();
      this.changed.wake();
    }
  }

  /** Give the stream what it takes. */
  private pump(): void {
    if (this.failure !== undefined || this.isWaitingToReopen) {
      return;
    }
    try {
      this.stream ??= this.open();
    } catch (error) {
      this.fail(error);
      return;
    }
    while (this.given < this.entries.length && !this.stream.writableNeedDrain) {
      this.stream.write((this.entries[this.given++] as Entry).request);
    }
  }

  private open(): Stream {
    const stream = this.calls.sendMessages();
    this.given = this.answered;
    stream.on("drain", () => this.stream === stream && this.pump());
    stream.on("data", (receipt: SendMessageResponse) => this.stream === stream && this.landed(receipt));
    // Answers that came before the error may still be on their way through the stream's buffer.
    stream.on("error", (error: ServiceError) => setImmediate(() => this.lost(stream, this.calls.errorOf(error))));
    stream.on("end", () => setImmediate(() => this.lost(stream, new Unavailable("the node has ended the stream"))));
    return stream;
  }

  private landed(receipt: SendMessageResponse): void {
    const entry = this.entries[this.answered] as Entry;
    this.answered += 1;
    this.bytes -= entry.bytes;
    this.progressAt = performance.now();
    this.backoff.succeeded();
    this.lastTrouble = undefined;
    if (this.answered * 2 > this.entries.length) {
      // What was answered is let go of, half of the array at a time.
      this.entries.splice(0, this.answered);
      this.given -= this.answered;
      this.answered = 0;
    }
    entry.landed({ id: receipt.id, partition: receipt.partition, offset: receipt.offset });
    if (this.isEmpty()) {
      clearTimeout(this.watch);
    }
    this.changed.wake();
  }

  private lost(stream: Stream, error: SealaneError): void {
    if (this.stream !== stream) {
      return;
    }
    this.stream = undefined;
    // A stream that was lost while nothing was on it is missed by nobody; the next message opens another one.
    if (!this.isEmpty()) {
      this.lastTrouble = error;
      this.isWaitingToReopen = true;
      this.backoff.after(error, this.ended.signal).then(
        () => {
          this.isWaitingToReopen = false;
          this.pump();
        },
        (final) => this.fail(final),
      );
    }
  }

  /** Fail once nothing has been answered for too long, whatever the reason. */
  private watchProgress(): void {
    const left = this.progressAt + this.timeoutSeconds * 1000 - performance.now();
    if (left > 0) {
      this.watch = setTimeout(() => this.watchProgress(), left);
    } else {
      const silence = `no message was stored for ${this.timeoutSeconds} s; whether the rest was is not known`;
      this.fail(this.lastTrouble ?? new DeadlineExceeded(silence));
    }
  }
}
