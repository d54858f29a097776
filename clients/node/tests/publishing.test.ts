import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Closed, connect, InvalidArgument, type Lane, newId } from "@sealane/client";
import { failureOf } from "./failing.js";
import { NodeProcess } from "./node_process.js";
import { take, texts } from "./reading.js";

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

test("a published message comes with all that was said about it", async () => {
  const receipt = await lane.publish("whole", "hello", {
    key: "customer-42",
    headers: { region: "eu", größe: "ü" },
    priority: 7,
    ttl: 3600,
  });
  const [message] = await take(lane, "whole", 1);

  assert.ok(message);
  assert.equal(message.id, receipt.id);
  assert.equal(message.text(), "hello");
  assert.equal(message.key?.toString(), "customer-42");
  assert.deepEqual({ ...message.headers }, { region: "eu", größe: "ü" });
  assert.equal(message.priority, 7);
  assert.equal(message.attempt, 1);
  assert.ok(message.ttl !== undefined && message.ttl > 3500 && message.ttl <= 3600);
  assert.ok(Math.abs(message.created.getTime() - Date.now()) < 60_000);
  assert.deepEqual([message.partition, message.offset], [receipt.partition, receipt.offset]);
});

test("a message that says nothing else has the defaults", async () => {
  await lane.publish("plain", Buffer.from([0, 255, 128]));
  const [message] = await take(lane, "plain", 1);

  assert.deepEqual([...(message?.payload ?? [])], [0, 255, 128]);
  assert.deepEqual([message?.key, message?.headers, message?.priority, message?.ttl], [undefined, {}, 5, undefined]);
});

test("every priority comes as it was given", async () => {
  const priorities = Array.from({ length: 10 }, (_, number) => number + 1);
  await lane.publishMany(
    "priorities",
    priorities.map((priority) => ({ payload: `${priority}`, priority })),
  );
  const came = await take(lane, "priorities", 10);
  assert.deepEqual(
    came.map((message) => `${message.priority}`),
    texts(came),
  );
  assert.deepEqual(came.map((message) => message.priority).sort(), [...priorities].sort());
});

test("a delayed message comes later than one that was published after it", async () => {
  await lane.publish("delays", "later", { delay: 0.5 });
  await lane.publish("delays", "at once");
  assert.deepEqual(texts(await take(lane, "delays", 2)), ["at once", "later"]);
});

test("a message that nobody took in its time to live does not come", async () => {
  await lane.publish("expiring", "gone", { ttl: 0.001 });
  await lane.publish("expiring", "there", { delay: 0.2 });
  assert.deepEqual(texts(await take(lane, "expiring", 1)), ["there"]);
});

test("a repeated id is stored once, and has the first one's receipt", async () => {
  const id = newId();
  const first = await lane.publish("once", "first", { id });
  const again = await lane.publish("once", "again", { id });
  const other = await lane.publish("once", "other");

  assert.deepEqual(again, first);
  assert.deepEqual(texts(await take(lane, "once", 2)), ["first", "other"]);
  assert.equal(other.offset, first.offset + 1);
});

test("ten thousand messages go one behind the other, in order", async () => {
  const payloads = Array.from({ length: 10_000 }, (_, number) => `message ${number}`);
  const receipts = await lane.publishMany("many", payloads);

  assert.deepEqual(
    receipts.map((receipt) => receipt.offset),
    payloads.map((_, number) => number),
  );
  const came: string[] = [];
  for await (const batch of lane.consumeBatches("many", { subscription: "test", messagesMax: 10_000 })) {
    came.push(...texts(batch.messages));
    await batch.ack();
    if (came.length >= payloads.length) {
      break;
    }
  }
  assert.deepEqual(came, payloads);
});

test("many messages may have more than a payload, and come from anywhere", async () => {
  async function* messages() {
    yield "plain";
    yield { payload: Buffer.from("keyed"), key: "k", headers: { n: "1" } };
  }
  await lane.publishMany("mixed", messages());
  const [plain, keyed] = await take(lane, "mixed", 2);

  assert.equal(plain?.text(), "plain");
  assert.deepEqual([keyed?.text(), keyed?.key?.toString(), keyed?.headers.n], ["keyed", "k", "1"]);
});

test("if one of many is refused, the error tells what was stored before it, and nothing behind it is", async () => {
  const tooLarge = Buffer.alloc(2 * 1024 * 1024);
  const error = await failureOf(lane.publishMany("refused", ["a", "b", tooLarge, "c"]));

  assert.ok(error instanceof InvalidArgument, `${error}`);
  assert.equal(error.code, "LimitExceeded");
  assert.equal(error.receipts?.length, 2);
  await lane.publish("refused", "end");
  assert.deepEqual(texts(await take(lane, "refused", 3)), ["a", "b", "end"]);
});

test("what a producer has sent is durable after a flush, in order", async () => {
  const producer = lane.producer("produced");
  for (let number = 0; number < 1_000; number++) {
    await producer.send(`${number}`, { headers: { n: `${number}` } });
  }
  await producer.flush();
  const came = await take(lane, "produced", 1_000, { prefetch: 1_000 }, async () => undefined);
  assert.deepEqual(
    texts(came),
    Array.from({ length: 1_000 }, (_, number) => `${number}`),
  );

  await producer.send("last");
  await producer.close();
  await assert.rejects(producer.send("too late"), Closed);
});

test("a producer that sends faster than the node stores is slowed down, and loses nothing", async () => {
  const payload = Buffer.alloc(64 * 1024, "x");
  const producer = lane.producer("heavy");
  for (let number = 0; number < 300; number++) {
    await producer.send(payload);
  }
  await producer.close();
  const receipt = await lane.publish("heavy", "end");
  assert.equal(receipt.offset, 300);
});

test("what a producer cannot send is told by its next call", async () => {
  const producer = lane.producer("refusing");
  await producer.send("fine");
  await producer.flush();
  await producer.send(Buffer.alloc(2 * 1024 * 1024));
  await assert.rejects(producer.flush(), InvalidArgument);
  await assert.rejects(producer.send("more"), InvalidArgument);
  await assert.rejects(producer.close(), InvalidArgument);
});

test("what makes no sense is refused before it is sent, and says what to do", async () => {
  const refused: [object, RegExp][] = [
    [{ priority: 0 }, /priority: 0 is not/],
    [{ priority: 2.5 }, /priority: 2.5 is not/],
    [{ ttl: Number.NaN }, /ttl: NaN is not/],
    [{ delay: -1 }, /delay: -1 is not/],
    [{ id: "42" }, /id: "42" is not a UUID/],
    [{ key: "" }, /key: is empty/],
    [{ headers: { n: 1 } }, /headers: the value of "n" is not a string/],
    [{ timeout: 0 }, /timeout: 0 is not/],
  ];
  for (const [options, message] of refused) {
    await assert.rejects(lane.publish("orders", "x", options), { name: "InvalidArgument", message });
  }
  await assert.rejects(lane.publish("orders", 42 as never), /payload: number is neither/);
});

test("TLS to a node that speaks plain text is told so, before anything is said to it", async () => {
  const secure = connect(node.address, { apiKey: "slk_secret" });
  await assert.rejects(secure.publish("orders", "x"), { name: "UntrustedNode", message: /speaks plain text/ });
  await secure.close();
});

test("a topic's name that cannot be is refused by the node", async () => {
  const error = await failureOf(lane.publish("no spaces please", "x"));
  assert.ok(error instanceof InvalidArgument);
  assert.equal(error.code, "InvalidName");
  assert.match(error.message, /no spaces please/);
});
