/**
 * A lease: messages that were taken together, and what is said about them.
 *
 * Acks of a lease that come while one is under way go together in the next: so many at once cost as one, and a single
 * one does not wait.
 */
import type { Calls } from "./calls.js";
import { durationOf } from "./durations.js";
import { LeaseLost } from "./errors.js";
import { type Message as Arrived, type PullMessagesResponse, SwarmMQService } from "./generated/swarmmq.js";
import { checkedSeconds } from "./outgoing.js";

/** Whose messages they are. */
export interface Source {
  readonly calls: Calls;
  readonly topic: string;
  readonly subscription: string;
}

export interface NackOptions {
  /** Seconds until it comes again; by default the subscription's back-off decides. 0 is at once. */
  delay?: number;
  /** Why; it goes with the message to the dead letters. */
  reason?: string;
}

interface Answer {
  readonly kind: "ack" | "nack";
  readonly done: Promise<void>;
}

interface WaitingAck {
  readonly ids: readonly string[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Lease {
  readonly arrived: readonly Arrived[];
  private readonly name: string;
  private readonly answers = new Map<string, Answer>();
  private waitingAcks: WaitingAck[] = [];
  private isAcking = false;

  constructor(
    readonly source: Source,
    response: PullMessagesResponse,
  ) {
    this.name = response.lease;
    this.arrived = response.messages;
  }

  /** Settle these; the same ones again is no error. Resolves when that is durable. */
  ack(ids: readonly string[]): Promise<void> {
    return this.answer("ack", ids, (fresh) => this.gatherAck(fresh));
  }

  /** Give these back as failed. Resolves when that is durable. */
  nack(ids: readonly string[], options: NackOptions): Promise<void> {
    if (options.delay !== undefined) {
      checkedSeconds(options.delay, "delay");
    }
    return this.answer("nack", ids, (fresh) => this.sendNack(fresh, options));
  }

  /** Keep all messages of the lease for so long from now on. Resolves with the deadline, by the node's clock. */
  async extend(seconds: number): Promise<Date> {
    const request = { ...this.address(), duration: durationOf(checkedSeconds(seconds, "seconds")) };
    const { deadline } = await this.source.calls.unary(SwarmMQService.extendLease, request);
    return deadline ?? new Date(Date.now() + seconds * 1000);
  }

  /** All that were not answered otherwise than by `kind`. */
  answerable(kind: Answer["kind"]): string[] {
    return this.arrived.map(({ id }) => id).filter((id) => (this.answers.get(id)?.kind ?? kind) === kind);
  }

  /** Give back what was never handed out. One try: what does not get through comes back when the lease ends. */
  async giveBack(ids: readonly string[], reason: string, seconds: number): Promise<void> {
    const request = { ...this.address(), ids: this.named(ids), delay: durationOf(0), reason };
    await this.source.calls.once(SwarmMQService.nackMessage, request, seconds);
  }

  private async answer(
    kind: Answer["kind"],
    ids: readonly string[],
    send: (fresh: readonly string[]) => Promise<void>,
  ): Promise<void> {
    const fresh: string[] = [];
    const underWay = new Set<Promise<void>>();
    for (const id of ids) {
      const earlier = this.answers.get(id);
      if (earlier === undefined) {
        fresh.push(id);
      } else if (earlier.kind === kind) {
        underWay.add(earlier.done);
      } else {
        throw new LeaseLost(`message ${id} cannot take a ${kind}: it has had its ${earlier.kind} before`);
      }
    }
    if (fresh.length > 0) {
      const answer = { kind, done: send(fresh) };
      for (const id of fresh) {
        this.answers.set(id, answer);
      }
      answer.done.catch((error) => this.forget(fresh, error));
      underWay.add(answer.done);
    }
    await Promise.all(underWay);
  }

  /** What did not get through may be said again. */
  private forget(ids: readonly string[], error: unknown): void {
    if (!(error instanceof LeaseLost)) {
      for (const id of ids) {
        this.answers.delete(id);
      }
    }
  }

  private gatherAck(ids: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waitingAcks.push({ ids, resolve, reject });
      if (!this.isAcking) {
        this.isAcking = true;
        setImmediate(() => void this.sendAcks());
      }
    });
  }

  private async sendAcks(): Promise<void> {
    while (this.waitingAcks.length > 0) {
      const together = this.waitingAcks;
      this.waitingAcks = [];
      const ids = together.flatMap((each) => each.ids);
      try {
        await this.source.calls.unary(SwarmMQService.ackMessage, { ...this.address(), ids: this.named(ids) });
        for (const { resolve } of together) {
          resolve();
        }
      } catch (error) {
        for (const { reject } of together) {
          reject(error);
        }
      }
    }
    this.isAcking = false;
  }

  private async sendNack(ids: readonly string[], { delay, reason }: NackOptions): Promise<void> {
    const request = {
      ...this.address(),
      ids: this.named(ids),
      delay: delay === undefined ? undefined : durationOf(delay),
      reason: reason ?? "",
    };
    let wasRepeated = false;
    const onRepeat = () => {
      wasRepeated = true;
    };
    try {
      await this.source.calls.unary(SwarmMQService.nackMessage, request, { onRepeat });
    } catch (error) {
      // If an earlier try got through and its answer did not, they are back, which is what was asked for.
      if (!(wasRepeated && error instanceof LeaseLost)) {
        throw error;
      }
    }
  }

  private address() {
    return { destination: this.source.topic, subscription: this.source.subscription, lease: this.name };
  }

  /** How a request names them: all of a lease by none. */
  private named(ids: readonly string[]): string[] {
    return ids.length === this.arrived.length ? [] : [...ids];
  }
}
