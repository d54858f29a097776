/** Every example runs as its reader would run it, and says what it promises to show. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { NodeProcess } from "./node_process.js";

const run = promisify(execFile);
const SECONDS_MAX = 60;

let node: NodeProcess;

before(async () => {
  node = await NodeProcess.start();
});

after(async () => {
  await node?.remove();
});

async function example(name: string, ...words: string[]): Promise<string> {
  const command = [`build/examples/${name}.js`, node.address, ...words, "--insecure"];
  const { stdout, stderr } = await run(process.execPath, command, { timeout: SECONDS_MAX * 1000 });
  assert.equal(stderr, "");
  return stdout;
}

test("one publishes a thousand orders, and the other bills them", async () => {
  assert.equal(await example("publish"), "order 1000 is durable at offset 999 of partition 0\n");
  assert.equal(await example("consume", "1000"), "1000 orders were billed\n");
});
