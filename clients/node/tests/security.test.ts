import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { inspect } from "node:util";
import { connect, Forbidden, type Lane, RateLimited, Unauthenticated, UntrustedNode } from "@sealane/client";
import { failureOf } from "./failing.js";
import { NodeProcess, sealane } from "./node_process.js";
import { take, texts } from "./reading.js";

let node: NodeProcess;
let ca: string;
let apiKey: string;
const lanes: Lane[] = [];

before(async () => {
  node = await NodeProcess.start({ insecure: false });
  ca = `${node.data}/identity/ca.crt`;
  apiKey = await newKey("shop");
});

after(async () => {
  await Promise.all(lanes.map((lane) => lane.close()));
  await node?.remove();
});

async function newKey(account: string, ...options: string[]): Promise<string> {
  return JSON.parse(await node.sealane("key", "create", account, "--json", ...options)).key;
}

function lane(options: Parameters<typeof connect>[1]): Lane {
  const made = connect(node.address, { timeout: 10, ...options });
  lanes.push(made);
  return made;
}

test("by TLS with an API key, messages go out and come in, and tell who made them", async () => {
  const shop = lane({ ca, apiKey });
  await shop.publish("orders", "hello");
  const [message] = await take(shop, "orders", 1);
  assert.deepEqual([message?.text(), message?.producer], ["hello", "shop"]);
});

test("the key and the authority may be in the environment, the authority as text too", async () => {
  process.env.SEALANE_API_KEY = apiKey;
  process.env.SEALANE_CA = await readFile(ca, "utf8");
  try {
    await lane({}).publish("environment", "hello");
  } finally {
    delete process.env.SEALANE_API_KEY;
    delete process.env.SEALANE_CA;
  }
});

test("a client's certificate is enough", async () => {
  const out = node.path("certificates");
  await node.sealane("ca", "issue", "billing", "--out", out);
  const billing = lane({ ca, certificate: `${out}/billing.crt`, key: `${out}/billing.key` });
  await billing.publish("certified", "hello");
  const [message] = await take(billing, "certified", 1);
  assert.equal(message?.producer, "billing");
});

test("a wrong key, and none, are told that they are", async () => {
  const wrong = `${apiKey.slice(0, -6)}${apiKey.endsWith("AAAAAA") ? "BBBBBB" : "AAAAAA"}`;
  await assert.rejects(lane({ ca, apiKey: wrong }).publish("orders", "x"), Unauthenticated);
  await assert.rejects(lane({ ca, apiKey: "nonsense" }).publish("orders", "x"), Unauthenticated);
  await assert.rejects(lane({ ca }).publish("orders", "x"), Unauthenticated);
  await assert.rejects(lane({ ca }).consume("orders", { subscription: "test" }).next(), Unauthenticated);
});

test("a secret is in no error and in no lane that is written out", async () => {
  const wrong = `${apiKey.slice(0, -6)}AAAAAA`;
  const refused = lane({ ca, apiKey: wrong });
  const error = await failureOf(refused.publish("orders", "x"));
  for (const written of [
    `${error}`,
    `${error.stack}`,
    inspect(error, { depth: 10 }),
    inspect(refused, { depth: 10 }),
  ]) {
    assert.ok(!written.includes(wrong), written);
  }
});

test("what was not granted is forbidden, each in its own way", async () => {
  const sensor = lane({ ca, apiKey: await newKey("sensor", "--allow", "publish:readings*") });
  await sensor.publish("readings", "21 °C");

  await assert.rejects(sensor.publish("orders", "x"), { name: "Forbidden", message: /'sensor' may not publish/ });
  await assert.rejects(sensor.publishMany("orders", ["x"]), Forbidden);
  await assert.rejects(sensor.consume("readings", { subscription: "test" }).next(), Forbidden);
  const producer = sensor.producer("orders");
  await producer.send("x");
  await assert.rejects(producer.flush(), Forbidden);
});

test("whoever is too fast is slowed down and loses nothing, and is told so if time runs out", async () => {
  const key = await newKey("eager");
  await node.sealane("quota", "set", "principal", "eager", "--messages", "50");
  const eager = lane({ ca, apiKey: key });
  const payloads = Array.from({ length: 120 }, (_, number) => `${number}`);
  await eager.publishMany("quick", payloads);
  assert.deepEqual(texts(await take(lane({ ca, apiKey }), "quick", 120)), payloads);

  await node.sealane("quota", "set", "principal", "eager", "--messages", "1");
  const error = await failureOf(eager.publishMany("quick", payloads, { timeout: 0.5 }));
  assert.ok(error instanceof RateLimited, `${error}`);
  assert.ok(error.retryAfterSeconds > 0);
});

test("messages of errors are for people", async () => {
  const refused = connect("localhost:1", { ca, apiKey, timeout: 2 });
  lanes.push(refused);
  await assert.rejects(refused.publish("orders", "x"), {
    message: /^the node at localhost:1 cannot be reached: connect ECONNREFUSED [^ ]+$/,
  });
});

test("a node of an unknown authority, or of another name, is not trusted", async () => {
  await assert.rejects(lane({ apiKey }).publish("orders", "x"), UntrustedNode);
  const out = node.path("other");
  await node.sealane("ca", "issue", "stranger", "--out", out);
  await assert.rejects(lane({ ca: `${out}/stranger.crt`, apiKey }).publish("orders", "x"), UntrustedNode);

  // Another name for the same place, which the node's certificate is not for.
  const renamed = connect(node.address.replace("localhost", "127.1"), { ca, apiKey });
  lanes.push(renamed);
  await assert.rejects(renamed.publish("orders", "x"), { name: "UntrustedNode", message: /127\.1/ });
});

test("a certificate of another authority is refused, and that is said", async () => {
  const out = node.path("foreign");
  const another = ["--data", node.path("another-authority")];
  await sealane("ca", "init", ...another);
  await sealane("ca", "issue", "billing", "--out", out, ...another);
  const foreign = lane({ ca, certificate: `${out}/billing.crt`, key: `${out}/billing.key`, timeout: 2 });
  const message = /refuses the certificate \(unknown ca\)/;
  await assert.rejects(foreign.publish("orders", "x"), { name: "Unauthenticated", message });
});

test("plain text to a node with TLS is told so, and a secret is never sent that way", async () => {
  const plain = connect(node.address, { insecure: true, timeout: 5 });
  lanes.push(plain);
  const message = `insecure: the node at ${node.address} speaks TLS; leave it out`;
  await assert.rejects(plain.publish("orders", "x"), { name: "InvalidArgument", message });
  for (const secret of [{ apiKey }, { token: "t" }, { certificate: ca, key: ca }]) {
    assert.throws(() => connect(node.address, { insecure: true, ...secret }), /would cross the network in plain text/);
  }
});

test("what cannot be a credential or an address is refused where it is given", () => {
  const refused: [string, object, RegExp][] = [
    ["localhost", { certificate: "-----BEGIN" }, /key: is missing; certificate needs it/],
    ["localhost", { key: "-----BEGIN" }, /certificate: is missing; key needs it/],
    ["localhost", { ca: "/nowhere/ca.crt" }, /ca: \/nowhere\/ca.crt cannot be read/],
    ["localhost", { ca: Buffer.from("x") }, /ca: is not PEM/],
    ["localhost", { apiKey: "a", token: "b" }, /either an API key or a token/],
    ["localhost", { timeout: -1 }, /timeout: -1 is not/],
    ["sealanes://localhost:7070", {}, /address: "sealanes:\/\/localhost:7070" is not host:port/],
    ["", {}, /address: "" is not host:port/],
  ];
  for (const [address, options, message] of refused) {
    assert.throws(() => connect(address, options), { name: "InvalidArgument", message });
  }
});
