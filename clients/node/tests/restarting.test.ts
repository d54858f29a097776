import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { connect, DeadlineExceeded, type Lane, LeaseLost, Unavailable } from "@sealane/client";
import { NodeProcess } from "./node_process.js";
import { until } from "./waiting.js";

let node: NodeProcess | undefined;
const lanes: Lane[] = [];

beforeEach(async () => {
  node ??= await NodeProcess.start();
});

after(async () => {
  await Promise.all(lanes.map((lane) => lane.close()));
  await node?.remove();
});

function newLane(): Lane {
  const lane = connect(started().address, { insecure: true, timeout: 60 });
  lanes.push(lane);
  return lane;
}

function started(): NodeProcess {
  assert.ok(node);
  return node;
}

test("a node is killed, and restarted, under a producer and a consumer: nothing is lost or comes again", async () => {
  const count = 1_500;
  const produced = async () => {
    const producer = newLane().producer("orders");
    for (let number = 0; number < count; number++) {
      await producer.send(`${number}`);
      if (number % 100 === 0) {
        await producer.flush();
      }
    }
    await producer.close();
  };
  const came = new Set<string>();
  const acked = new Set<string>();
  const cameAgain: string[] = [];
  const consumed = async () => {
    for await (const message of newLane().consume("orders", { subscription: "test" })) {
      if (acked.has(message.id)) {
        cameAgain.push(message.text());
      }
      came.add(message.text());
      try {
        await message.ack();
        acked.add(message.id);
      } catch (error) {
        assert.ok(error instanceof LeaseLost, `${error}`);
      }
      if (came.size === count) {
        break;
      }
    }
  };
  const work = Promise.all([produced(), consumed()]);
  for (const [share, end] of [
    [0.2, () => started().kill()],
    [0.5, () => started().stop()],
  ] as const) {
    await Promise.race([work, until(60, () => (came.size > count * share ? true : undefined))]);
    await end();
    await started().start();
  }
  await work;

  assert.deepEqual(cameAgain, []);
  assert.equal(came.size, count);
});

test("a stream that is lost in the middle of many is continued: each message is stored once, in order", async () => {
  const lane = newLane();
  const count = 10_000;
  let halfway = false;
  function* payloads() {
    for (let number = 0; number < count; number++) {
      halfway ||= number > count / 2;
      yield `${number}`;
    }
  }
  const publishing = lane.publishMany("continued", payloads());
  await until(60, () => (halfway ? true : undefined));
  await started().kill();
  await started().start();
  const receipts = await publishing;

  assert.deepEqual(
    receipts.map(({ offset }) => offset),
    Array.from({ length: count }, (_, number) => number),
  );
});

test("a publish waits for a node that comes back, and an ack too", async () => {
  const lane = newLane();
  await lane.publish("patient", "first");
  for await (const message of lane.consume("patient", { subscription: "test" })) {
    await started().kill();
    const answers = Promise.all([message.ack(), lane.publish("patient", "second")]);
    await started().start();
    await answers;
    break;
  }
  for await (const message of lane.consume("patient", { subscription: "test" })) {
    assert.equal(message.text(), "second");
    await message.ack();
    break;
  }
});

test("without a node every call ends in time, and says why", async () => {
  const address = started().address;
  await started().remove();
  node = undefined;
  const lane = connect(address, { insecure: true, timeout: 2 });
  lanes.push(lane);

  await assert.rejects(lane.publish("orders", "x"), (error) => error instanceof Unavailable);
  await assert.rejects(lane.publishMany("orders", ["x"]), (error) => error instanceof Unavailable);
  await assert.rejects(lane.health(), (error) => error instanceof Unavailable || error instanceof DeadlineExceeded);
  const consuming = lane.consume("orders", { subscription: "test", retry: { giveUpAfterSeconds: 0.3 } });
  await assert.rejects(consuming.next(), Unavailable);
});
