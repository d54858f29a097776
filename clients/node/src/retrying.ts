/** Trying again: what may go well another time, after a pause that grows, for as long as it makes sense. */
import { pause } from "./durations.js";
import { InvalidArgument, RateLimited, Unavailable } from "./errors.js";

export interface Retry {
  /** The first pause; each one after it is twice as long. By default 0.1. */
  firstSeconds?: number;
  /** The longest pause. By default 10. */
  maxSeconds?: number;
  /** How long to go on without any success. */
  giveUpAfterSeconds?: number;
}

/** For calls, whose callers wait: a lost connection costs nothing to ask about. */
export const SOON: Retry = { maxSeconds: 2 };

export class Backoff {
  private readonly first: number;
  private readonly longest: number;
  private readonly giveUpAfter: number;
  private failures = 0;
  private since: number | undefined;

  /** `since`: from when on it counts as failing, by `performance.now()`; not given, from its first failure on. */
  constructor(retry: Retry, giveUpAfterSeconds: number, since?: number) {
    this.since = since;
    this.first = retry.firstSeconds ?? 0.1;
    this.longest = retry.maxSeconds ?? 10;
    this.giveUpAfter = retry.giveUpAfterSeconds ?? giveUpAfterSeconds;
    if (!(this.first > 0 && this.longest >= this.first && this.giveUpAfter >= 0)) {
      throw new InvalidArgument("retry: needs 0 < firstSeconds <= maxSeconds, and giveUpAfterSeconds of at least 0");
    }
  }

  succeeded(): void {
    this.failures = 0;
    this.since = undefined;
  }

  /** Wait before the next try. Throws the error if another one would not help, or would come too late. */
  async after(error: unknown, signal?: AbortSignal): Promise<void> {
    if (!(error instanceof Unavailable || error instanceof RateLimited)) {
      throw error;
    }
    const now = performance.now();
    this.since ??= now;
    const seconds = error instanceof RateLimited ? error.retryAfterSeconds : this.nextPause();
    this.failures += 1;
    if ((now - this.since) / 1000 + seconds > this.giveUpAfter) {
      throw error;
    }
    await pause(seconds, signal);
  }

  /** With jitter, so that clients which lost the same node do not come back all at once. */
  private nextPause(): number {
    const full = Math.min(this.longest, this.first * 2 ** Math.min(this.failures, 30));
    return full * (0.5 + Math.random() / 2);
  }
}
