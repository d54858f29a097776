/**
 * Bill orders until Ctrl-C, or until there have been as many as were asked for.
 *
 *     node consume.js broker.example:9001 1000            SEALANE_API_KEY and SEALANE_CA say who asks and whom to trust
 *     node consume.js localhost:9001 1000 --insecure      for a node that was started with --insecure
 */
import { connect, LeaseLost, type Message } from "@sealane/client";

const [address, wanted = "Infinity"] = process.argv.slice(2);
const lane = connect(address, { insecure: process.argv.includes("--insecure") });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());

const billed = new Set<string>();

async function bill(message: Message): Promise<void> {
  billed.add(message.text()); // Before the ack: an order may come twice, and never not at all.
  try {
    await message.ack();
  } catch (error) {
    if (!(error instanceof LeaseLost)) {
      throw error;
    }
    // It took too long, and comes again.
  }
}

// Each batch is worked on side by side: its acks travel together.
for await (const batch of lane.consumeBatches("orders", { subscription: "billing", signal: stop.signal })) {
  await Promise.all(batch.messages.map(bill));
  if (billed.size >= Number(wanted)) {
    break;
  }
}
console.log(`${billed.size} orders were billed`);
await lane.close();
