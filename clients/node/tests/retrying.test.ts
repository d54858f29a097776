import assert from "node:assert/strict";
import { test } from "node:test";
import { durationOf, pause, secondsOf } from "../src/durations.js";
import { LeaseLost, RateLimited, Unavailable } from "../src/errors.js";
import { Backoff } from "../src/retrying.js";

const UNAVAILABLE = new Unavailable("gone");

test("what another try would not mend is thrown at once", async () => {
  const error = new LeaseLost("over");
  await assert.rejects(new Backoff({}, 60).after(error), error);
});

test("it goes on until it has failed for too long, and throws the last error", async () => {
  const backoff = new Backoff({ firstSeconds: 0.01, maxSeconds: 0.02, giveUpAfterSeconds: 0.1 }, 60);
  const started = performance.now();
  let tries = 0;
  await assert.rejects(async () => {
    for (; ; tries++) {
      await backoff.after(UNAVAILABLE);
    }
  }, UNAVAILABLE);
  assert.ok(tries >= 3 && tries <= 15, `${tries} tries`);
  assert.ok(performance.now() - started < 1_000);
});

test("a success forgets the failures before it", async () => {
  const backoff = new Backoff({ firstSeconds: 0.02, giveUpAfterSeconds: 0.05 }, 60);
  for (let round = 0; round < 5; round++) {
    await backoff.after(UNAVAILABLE);
    backoff.succeeded();
  }
});

test("whoever is told how long to wait waits so long", async () => {
  const started = performance.now();
  await new Backoff({}, 60).after(new RateLimited("slow down", { retryAfterSeconds: 0.15 }));
  assert.ok(performance.now() - started >= 145);
  const late = new RateLimited("slow down", { retryAfterSeconds: 100 });
  await assert.rejects(new Backoff({}, 60).after(late), late);
});

test("a pause ends with its signal", async () => {
  const reason = new Error("enough");
  await assert.rejects(pause(60, AbortSignal.abort(reason)), reason);
  const controller = new AbortController();
  const pausing = pause(60, controller.signal);
  controller.abort(reason);
  await assert.rejects(pausing, reason);
});

test("seconds survive the wire", () => {
  for (const seconds of [0, 0.001, 0.5, 1, 1.5, 3600.25, 86_400 * 365]) {
    assert.equal(secondsOf(durationOf(seconds)), seconds);
  }
  assert.deepEqual(durationOf(0.999_999_999_9), { seconds: 1, nanos: 0 });
});
