import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, InvalidArgument, type Lane, LeaseLost, type Message } from "@sealane/client";
import { NodeProcess } from "./node_process.js";
import { take, texts } from "./reading.js";
import { until } from "./waiting.js";

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

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, number) => `message ${number}`);
}

test("what was acknowledged does not come again, also for another lane", async () => {
  await lane.publishMany("acked", ["first", "second"]);
  await take(lane, "acked", 1);
  const other = connect(node.address, { insecure: true });
  assert.deepEqual(texts(await take(other, "acked", 1)), ["second"]);
  await other.close();
});

test("every subscription gets all messages, and its consumers share them", async () => {
  await lane.publishMany("shared", numbered(20));
  const share = (subscription: string, count: number) => take(lane, "shared", count, { subscription, prefetch: 1 });
  const [some, others, all] = await Promise.all([share("shared", 10), share("shared", 10), share("whole", 20)]);

  assert.deepEqual(texts([...some, ...others]).sort(), numbered(20).sort());
  assert.deepEqual(texts(all), numbered(20));
});

test("messages that come while a loop waits are handed out as they come", async () => {
  const came: string[] = [];
  const reading = take(lane, "waiting", 3, {}, async (message) => came.push(message.text()));
  for (const text of numbered(3)) {
    await lane.publish("waiting", text);
    await until(10, () => (came.at(-1) === text ? true : undefined));
  }
  await reading;
});

test("what was given back comes again as another attempt", async () => {
  await lane.publish("failing", "work");
  const attempts: number[] = [];
  await take(lane, "failing", 3, {}, async (message) => {
    attempts.push(message.attempt);
    await (message.attempt < 3 ? message.nack({ delay: 0 }) : message.ack());
  });
  assert.deepEqual(attempts, [1, 2, 3]);
});

test("what fails too often is with the dead letters, with the reason", async () => {
  await lane.publish("hopeless", "work", { headers: { region: "eu" } });
  await take(lane, "hopeless", 16, {}, (message) => message.nack({ delay: 0, reason: "no address" }));

  const [dead] = await take(lane, "hopeless.test.dead", 1);
  assert.equal(dead?.text(), "work");
  assert.equal(dead?.headers.region, "eu");
  assert.equal(dead?.headers["sealane-dead-reason"], "no address");
});

test("acks that are given side by side all hold", async () => {
  await lane.publishMany("together", numbered(250));
  const acks: Promise<void>[] = [];
  await take(lane, "together", 250, {}, async (message) => acks.push(message.ack()));
  await Promise.all(acks);

  await lane.publish("together", "end");
  assert.deepEqual(texts(await take(lane, "together", 1)), ["end"]);
});

test("an ack given twice is no error, and what had its ack cannot be given back", async () => {
  await lane.publish("twice", "work");
  await take(lane, "twice", 1, {}, async (message) => {
    await Promise.all([message.ack(), message.ack()]);
    await message.ack();
    await assert.rejects(message.nack(), LeaseLost);
  });
});

test("a message whose lease is over cannot be acknowledged, and comes to another", async () => {
  await lane.publish("lost", "work");
  const [slow] = await take(lane, "lost", 1, {}, (message) => message.extend(0.05));
  const [again] = await take(lane, "lost", 1, {}, async () => undefined);

  assert.equal(again?.attempt, 2);
  await assert.rejects(slow?.ack() as Promise<void>, { name: "LeaseLost", code: "LeaseLost" });
  await again?.ack();
});

test("a lease that was extended lasts", async () => {
  await lane.publish("extended", "work");
  await take(lane, "extended", 1, {}, async (message) => {
    const deadline = await message.extend(600);
    assert.ok(deadline.getTime() > Date.now() + 500_000);
    await message.ack();
  });
});

test("what waits here to be handed out keeps its lease, however slow the loop is", async () => {
  for (const topic of ["kept", "probe"]) {
    // Python makes subscriptions with short leases.
    await lane.publish(topic, "made");
    await node.sealane("consume", topic, "--subscription", "test", "--lease", "1s", "--count", "1");
  }
  await lane.publishMany("kept", ["first", "second"]);

  const attempts: number[] = [];
  await take(lane, "kept", 2, {}, async (message) => {
    attempts.push(message.attempt);
    if (attempts.length === 1) {
      // When this one has come twice, a lease that began later has ended.
      await lane.publish("probe", "x");
      await take(lane, "probe", 2, {}, async () => undefined);
    }
    await message.ack();
  });
  assert.deepEqual(attempts, [1, 1]);
});

test("whoever leaves the loop gives back at once what was fetched and not handed out", async () => {
  await lane.publishMany("left", numbered(50));
  const [first] = await take(lane, "left", 1);
  const started = performance.now();
  const rest = await take(lane, "left", 49);

  assert.equal(first?.text(), "message 0");
  assert.deepEqual(texts(rest).sort(), numbered(50).slice(1).sort());
  assert.ok(performance.now() - started < 15_000, "it did not wait for the leases to end");
});

test("an exception in the loop gives back too, and reaches the caller", async () => {
  await lane.publishMany("thrown", numbered(5));
  const failing = take(lane, "thrown", 5, {}, async (message) => {
    await message.ack();
    throw new Error("on purpose");
  });
  await assert.rejects(failing, /on purpose/);
  assert.equal((await take(lane, "thrown", 4)).length, 4);
});

test("a batch is answered as a whole, but for what was answered by itself", async () => {
  await lane.publishMany("batches", numbered(10));
  for await (const batch of lane.consumeBatches("batches", { subscription: "test", messagesMax: 10 })) {
    assert.ok(batch.length <= 10);
    const odd = batch.messages.find((message) => message.text() === "message 3");
    await odd?.nack({ delay: 0 });
    await batch.ack();
    if (odd !== undefined) {
      break;
    }
  }
  const [again] = await take(lane, "batches", 1);
  assert.deepEqual([again?.text(), again?.attempt], ["message 3", 2]);
});

test("a signal ends a loop that waits, and one that works", async () => {
  const waiting = new AbortController();
  const idle = (async () => {
    for await (const _ of lane.consume("silent", { subscription: "test", signal: waiting.signal })) {
      assert.fail("nothing was published");
    }
  })();
  setImmediate(() => waiting.abort());
  await idle;

  await lane.publishMany("stopped", numbered(10));
  const working = new AbortController();
  const came: Message[] = [];
  for await (const message of lane.consume("stopped", { subscription: "test", signal: working.signal })) {
    came.push(message);
    await message.ack();
    working.abort();
  }
  assert.equal(came.length, 1);
  assert.equal((await take(lane, "stopped", 9)).length, 9);
});

test("what a signal has ended is given back before the lane is closed", async () => {
  const closing = connect(node.address, { insecure: true });
  await closing.publishMany("hasty", numbered(10));
  const controller = new AbortController();
  for await (const message of closing.consume("hasty", { subscription: "test", signal: controller.signal })) {
    await message.ack();
    controller.abort();
  }
  await closing.close();

  const started = performance.now();
  assert.equal((await take(lane, "hasty", 9)).length, 9);
  assert.ok(performance.now() - started < 15_000, "it did not wait for the leases to end");
});

test("many calls may share one signal", async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on("warning", warned);
  const { signal } = new AbortController();
  await Promise.all(numbered(50).map((text) => lane.publish("signalled", text, { signal })));
  process.off("warning", warned);
  assert.deepEqual(warnings, []);
});

test("a signal ends a call with its reason", async () => {
  const reason = new Error("enough");
  const controller = new AbortController();
  const publishing = lane.publish("orders", "x", { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(publishing, reason);
  await assert.rejects(lane.publish("orders", "x", { signal: AbortSignal.abort(reason) }), reason);
  await assert.rejects(lane.publishMany("orders", ["x"], { signal: AbortSignal.abort(reason) }), reason);
});

test("a lane that is closed ends its loops and answers nothing more", async () => {
  const closing = connect(node.address, { insecure: true });
  await closing.publishMany("closing", numbered(3));
  const idle = (async () => {
    for await (const _ of closing.consume("nothing", { subscription: "test" })) {
      assert.fail("nothing was published");
    }
  })();
  let handedOut: Message | undefined;
  for await (const message of closing.consume("closing", { subscription: "test" })) {
    handedOut = message;
    await closing.close();
  }
  await idle;
  await assert.rejects(closing.publish("closing", "x"), { name: "Closed" });
  await assert.rejects(handedOut?.ack() as Promise<void>, { name: "Closed" });
  assert.throws(() => closing.consume("closing", { subscription: "test" }), { name: "Closed" });
  assert.equal((await take(lane, "closing", 2)).length, 2);
});

test("closing waits for what is under way", async () => {
  const closing = connect(node.address, { insecure: true });
  const publishing = closing.publish("hurried", "one");
  const producer = closing.producer("hurried");
  await producer.send("two");
  await closing.close();
  await publishing;
  assert.equal((await take(lane, "hurried", 2)).length, 2);
});

test("an option that makes no sense is refused where it is given", () => {
  const refused: [object, RegExp][] = [
    [{ subscription: "" }, /subscription: is missing/],
    [{ subscription: "test", prefetch: 0 }, /prefetch: 0 is not/],
    [{ subscription: "test", prefetch: 10_001 }, /prefetch: 10001 is not/],
    [{ subscription: "test", retry: { firstSeconds: 0 } }, /retry: needs/],
  ];
  for (const [options, message] of refused) {
    assert.throws(() => lane.consume("orders", options as never), { name: "InvalidArgument", message });
  }
  assert.throws(() => lane.consumeBatches("orders", { subscription: "test", messagesMax: 1.5 }), InvalidArgument);
});

test("a node says how it is", async () => {
  const health = await lane.health();
  assert.equal(health.isServing, true);
  assert.deepEqual(health.problems, []);
  assert.match(health.version, /^\d+\.\d+\.\d+/);
  assert.ok(health.nodeId.length > 0 && health.uptimeSeconds > 0);
});
