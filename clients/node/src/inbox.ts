/**
 * What a consumer has fetched ahead. The node is asked when nothing is left here and somebody waits: so that what is
 * fetched is handed out soon, and whoever leaves the loop has little to give back.
 */
import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";
import { durationOf } from "./durations.js";
import { Unavailable } from "./errors.js";
import type { Message as Arrived, PullMessagesResponse } from "./generated/swarmmq.js";
import { Keeper } from "./keeping.js";
import { Lease, type Source } from "./lease.js";
import { Backoff, type Retry } from "./retrying.js";
import { Waiters } from "./waiters.js";

/** How long the node waits for messages until it says that there are none. */
const WAIT_SECONDS = 20;
/** How much later than that it may say so. */
const GRACE_SECONDS = 10;
/** For giving back what was fetched and not handed out. */
const LEAVE_SECONDS = 5;

export class Inbox {
  /** Those of which something was not handed out, oldest first. */
  private readonly fetched: Fetched[] = [];
  private readonly keeper = new Keeper();
  private readonly backoff: Backoff;
  private readonly changed = new Waiters();
  private readonly left = new AbortController();
  private call: ClientReadableStream<PullMessagesResponse> | undefined;
  private silence: NodeJS.Timeout | undefined;
  private trouble: unknown;
  private leaving: Promise<void> | undefined;

  constructor(
    private readonly source: Source,
    private readonly messagesMax: number,
    retry: Retry,
  ) {
    this.backoff = new Backoff(retry, Number.POSITIVE_INFINITY);
  }

  /** The next message with its lease; undefined once the loop was left. Throws what another try would not mend. */
  async nextMessage(): Promise<[Lease, Arrived] | undefined> {
    await this.ready();
    const [first] = this.fetched;
    const arrived = first?.waiting.shift();
    if (first === undefined || arrived === undefined) {
      return undefined;
    }
    if (first.waiting.length === 0) {
      this.remove(first);
    }
    return [first.lease, arrived];
  }

  /** As `nextMessage`, for all that were taken together. */
  async nextLease(): Promise<Lease | undefined> {
    await this.ready();
    const [first] = this.fetched;
    if (first !== undefined) {
      this.remove(first);
    }
    return first?.lease;
  }

  /** Take no more, and give back what was not handed out. Idempotent; never fails. */
  leave(): Promise<void> {
    this.leaving ??= this.end();
    return this.leaving;
  }

  private async end(): Promise<void> {
    this.left.abort();
    this.keeper.stop();
    const call = this.call;
    this.forgetCall();
    call?.cancel();
    this.changed.wake();
    await Promise.all(this.fetched.splice(0).map(giveBack));
  }

  /** Return when something was fetched, or the loop was left: there is nothing then. */
  private async ready(): Promise<void> {
    while (this.fetched.length === 0 && !this.left.signal.aborted) {
      if (this.trouble !== undefined) {
        await this.recover();
      } else {
        if (this.call === undefined) {
          this.pull();
        }
        await this.changed.wait();
      }
    }
  }

  private async recover(): Promise<void> {
    const trouble = this.trouble;
    this.trouble = undefined;
    try {
      await this.backoff.after(trouble, this.left.signal);
    } catch (error) {
      if (!this.left.signal.aborted) {
        throw error;
      }
    }
  }

  private pull(): void {
    const { calls, topic, subscription } = this.source;
    const call = calls.pullMessages({
      destination: topic,
      subscription,
      maxMessages: this.messagesMax,
      wait: durationOf(WAIT_SECONDS),
      follow: false,
    });
    this.call = call;
    this.watch(call);
    call.on("data", (response: PullMessagesResponse) => this.arrived(call, response));
    // Messages that came before the error may still be on their way through the stream's buffer.
    call.on("error", (error: ServiceError) => setImmediate(() => this.ended(call, calls.errorOf(error))));
    call.on("end", () => setImmediate(() => this.ended(call, undefined)));
  }

  private arrived(call: ClientReadableStream<PullMessagesResponse>, response: PullMessagesResponse): void {
    if (response.messages.length === 0) {
      return;
    }
    const fetched = new Fetched(new Lease(this.source, response));
    if (this.left.signal.aborted) {
      void giveBack(fetched);
      return;
    }
    this.fetched.push(fetched);
    // What was lost comes again by itself.
    this.keeper.keep(fetched.lease, response.deadline, () => this.remove(fetched));
    this.backoff.succeeded();
    this.watch(call);
    this.changed.wake();
  }

  private ended(call: ClientReadableStream<PullMessagesResponse>, error: unknown): void {
    if (this.call !== call) {
      return;
    }
    this.forgetCall();
    this.trouble = error;
    if (error === undefined) {
      this.backoff.succeeded();
    }
    this.changed.wake();
  }

  /** A node that says nothing for longer than it was told to wait is not there any more. */
  private watch(call: ClientReadableStream<PullMessagesResponse>): void {
    clearTimeout(this.silence);
    const seconds = WAIT_SECONDS + GRACE_SECONDS;
    this.silence = setTimeout(() => {
      this.ended(call, new Unavailable(`the node was silent for ${seconds} s`));
      call.cancel();
    }, seconds * 1000);
  }

  private forgetCall(): void {
    clearTimeout(this.silence);
    this.call = undefined;
  }

  private remove(fetched: Fetched): void {
    this.keeper.release(fetched.lease);
    const at = this.fetched.indexOf(fetched);
    if (at >= 0) {
      this.fetched.splice(at, 1);
    }
  }
}

class Fetched {
  /** What was not handed out. */
  readonly waiting: Arrived[];

  constructor(readonly lease: Lease) {
    this.waiting = [...lease.arrived];
  }
}

async function giveBack({ lease, waiting }: Fetched): Promise<void> {
  const ids = waiting.map(({ id }) => id);
  try {
    await lease.giveBack(ids, "it was fetched ahead, and the consumer left", LEAVE_SECONDS);
  } catch {
    // Then they come back when their lease ends.
  }
}
