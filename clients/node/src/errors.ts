/**
 * Every error of this package: one tree under `SealaneError`, with a narrower class where a caller would do something
 * different about it. A message of the node says what was asked, what is wrong and what to do.
 */
import type { Receipt } from "./receipt.js";

export class SealaneError extends Error {
  /** What the node calls it: `QueueFull`, `TopicNotFound`, …; finer than the class. */
  readonly code: string;
  /** Of `publishMany`: what was stored before this happened, in order. */
  declare receipts?: readonly Receipt[];

  constructor(message: string, options: { code?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = options.code ?? new.target.name;
  }
}

/** The node does not know who is asking: a credential is missing, wrong or over. */
export class Unauthenticated extends SealaneError {}

/** The principal is known and may not do this. */
export class Forbidden extends SealaneError {}

/** Something that was asked for by name does not exist. */
export class NotFound extends SealaneError {}

/** A message, a name or an option has a value that it cannot have. */
export class InvalidArgument extends SealaneError {}

/** The message is no longer leased to this consumer; unless it was settled, it may be delivered again. */
export class LeaseLost extends SealaneError {}

/** A quota is used up for now, and nothing was done. */
export class RateLimited extends SealaneError {
  /** After so long the same may be asked again. */
  readonly retryAfterSeconds: number;

  constructor(message: string, options: { code?: string; cause?: unknown; retryAfterSeconds?: number } = {}) {
    super(message, options);
    this.retryAfterSeconds = options.retryAfterSeconds ?? 1;
  }
}

/** No node could be reached, or the connection was lost; whether the work happened is not known. */
export class Unavailable extends SealaneError {}

/** It is not certain that the node is the one that was meant, so nothing was said to it. */
export class UntrustedNode extends SealaneError {}

/** A wait ended at its deadline; whether the work happened is not known. */
export class DeadlineExceeded extends SealaneError {}

/** The lane or producer was closed. */
export class Closed extends SealaneError {}
