/** Reading what a test expects, and no more. */
import type { ConsumeOptions, Lane, Message } from "@sealane/client";

/** Take so many messages, do something about each, and leave. */
export async function take(
  lane: Lane,
  topic: string,
  count: number,
  options: Partial<ConsumeOptions> = {},
  answer: (message: Message) => Promise<unknown> = (message) => message.ack(),
): Promise<Message[]> {
  const taken: Message[] = [];
  const signal = AbortSignal.timeout(60_000);
  for await (const message of lane.consume(topic, { subscription: "test", signal, ...options })) {
    taken.push(message);
    await answer(message);
    if (taken.length === count) {
      return taken;
    }
  }
  throw new Error(`only ${taken.length} of ${count} messages came from ${topic}`);
}

export function texts(messages: readonly Message[]): string[] {
  return messages.map((message) => message.text());
}
