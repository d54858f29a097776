/** The loops of consumers. However such a loop is left, what was fetched ahead goes back at once. */
import { onAbort } from "./aborting.js";
import { InvalidArgument } from "./errors.js";
import type { Inbox } from "./inbox.js";
import { Message, MessageBatch } from "./message.js";
import type { Retry } from "./retrying.js";

export interface SubscriptionOptions {
  /** Who shares the messages: each one goes to one consumer of a subscription. It is made when it is new. */
  subscription: string;
  /** Ends the loop as `break` does. */
  signal?: AbortSignal;
  /** How to go on when the node cannot be reached. By default for ever, with pauses from 0.1 to 10 s. */
  retry?: Retry;
}

export interface ConsumeOptions extends SubscriptionOptions {
  /** How many messages are fetched ahead, 1 to 10,000. By default 100. */
  prefetch?: number;
}

export interface ConsumeBatchesOptions extends SubscriptionOptions {
  /** The largest batch, 1 to 10,000; the node may make smaller ones. By default 1,000. */
  messagesMax?: number;
}

/** What the node gives at a time at most. */
const PULL_MESSAGES_MAX = 10_000;

export async function* messagesOf(inbox: Inbox): AsyncGenerator<Message, void, void> {
  for (let next = await inbox.nextMessage(); next !== undefined; next = await inbox.nextMessage()) {
    yield new Message(...next);
  }
}

export async function* batchesOf(inbox: Inbox): AsyncGenerator<MessageBatch, void, void> {
  for (let lease = await inbox.nextLease(); lease !== undefined; lease = await inbox.nextLease()) {
    yield new MessageBatch(lease);
  }
}

/** The items, from an inbox that is left when the loop is, or when the signal says so. */
export async function* leaving<T>(
  inbox: Inbox,
  items: AsyncGenerator<T, void, void>,
  signal: AbortSignal | undefined,
  track: { add(inbox: Inbox): void; delete(inbox: Inbox): void },
): AsyncGenerator<T, void, void> {
  const takeBack = onAbort(signal, () => void inbox.leave());
  track.add(inbox);
  try {
    if (!signal?.aborted) {
      yield* items;
    }
  } finally {
    takeBack();
    await inbox.leave();
    track.delete(inbox);
  }
}

export function checkedCount(count: number, what: string): number {
  if (!(Number.isInteger(count) && count >= 1 && count <= PULL_MESSAGES_MAX)) {
    throw new InvalidArgument(`${what}: ${count} is not a whole number in 1 to ${PULL_MESSAGES_MAX} messages`);
  }
  return count;
}
