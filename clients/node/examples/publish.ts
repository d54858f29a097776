/**
 * Publish a thousand orders, and print where the last one is.
 *
 *     node publish.js broker.example:9001                 SEALANE_API_KEY and SEALANE_CA say who asks and whom to trust
 *     node publish.js localhost:9001 --insecure           for a node that was started with --insecure
 */
import { connect } from "@sealane/client";

const lane = connect(process.argv[2], { insecure: process.argv.includes("--insecure") });

const producer = lane.producer("orders");
for (let number = 1; number < 1_000; number++) {
  // Returns at once, unless the node is behind.
  await producer.send(`order ${number}`, { key: `customer ${number % 10}`, headers: { region: "eu" } });
}
await producer.close(); // From here on they are on the node's disk.

const receipt = await lane.publish("orders", "order 1000", { key: "customer 0", priority: 9 });
console.log(`order 1000 is durable at offset ${receipt.offset} of partition ${receipt.partition}`);
await lane.close();
