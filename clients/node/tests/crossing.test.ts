/** Messages between this client and the one in Python, which speaks another protocol at another door. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, type Lane } from "@sealane/client";
import { NodeProcess } from "./node_process.js";
import { take } from "./reading.js";

let node: NodeProcess;
let lane: Lane;

before(async () => {
  node = await NodeProcess.start();
  lane = connect(node.address, { insecure: true });
});

after(async () => {
  await lane?.close();
  await node?.remove();
});

test("Python reads what was published here", async () => {
  const receipt = await lane.publish("out", "hällo", { key: "k", headers: { a: "b" }, priority: 9 });
  const read = JSON.parse(await node.sealane("consume", "out", "--subscription", "python", "--count", "1", "--json"));

  const { id, payload, key, headers, priority, attempt } = read;
  assert.deepEqual(
    { id, payload, key, headers, priority, attempt },
    { id: receipt.id, payload: "hällo", key: "k", headers: { a: "b" }, priority: 9, attempt: 1 },
  );
});

test("what Python has published is read here", async () => {
  const options = ["--key", "k", "--header", "a=b", "--priority", "9", "--json"];
  const receipt = JSON.parse(await node.sealane("publish", "in", "hällo", ...options));
  const [message] = await take(lane, "in", 1);

  assert.equal(message?.id, receipt.id);
  assert.deepEqual(
    [message?.text(), message?.key?.toString(), message?.headers, message?.priority],
    ["hällo", "k", { a: "b" }, 9],
  );
});

test("a filter that Python has given a subscription holds here too", async () => {
  const region = (name: string) => ({ payload: name, headers: { region: name } });
  await lane.publishMany("filtered", ["eu", "us", "eu"].map(region));
  const filter = ["--subscription", "test", "--filter", "headers['region'] = 'eu'", "--count", "1"];
  assert.equal((await node.sealane("consume", "filtered", ...filter)).trim(), "eu");

  await lane.publishMany("filtered", ["us", "eu"].map(region));
  const came = await take(lane, "filtered", 2);
  assert.deepEqual(
    came.map((message) => [message.text(), message.offset]),
    [
      ["eu", 2],
      ["eu", 4],
    ],
  );
});

test("a subscription is the same at both doors: what one has settled, the other does not get", async () => {
  await lane.publishMany("both", ["first", "second", "third"]);
  await take(lane, "both", 1);
  const read = await node.sealane("consume", "both", "--subscription", "test", "--count", "1");
  const [last] = await take(lane, "both", 1);
  assert.deepEqual([read.trim(), last?.text()], ["second", "third"]);
});
