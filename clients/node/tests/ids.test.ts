import assert from "node:assert/strict";
import { test } from "node:test";
import { isId, newId } from "../src/ids.js";

test("ids are UUIDs of version 7, differ, and sort in the order in which they were made", () => {
  const ids = Array.from({ length: 20_000 }, () => newId());
  for (const id of ids) {
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual([...ids].sort(), ids);
});

test("the time of an id is that of its making", () => {
  const before = Date.now();
  const time = Number.parseInt(newId().replace("-", "").slice(0, 12), 16);
  // Those made just before, more than fit a millisecond, may have run ahead of the clock.
  assert.ok(time >= before && time <= Date.now() + 1_000);
});

test("what is no UUID is not taken for one", () => {
  assert.ok(isId("01A1E283-9E3F-7D74-8DDA-C564E24CA1E3"));
  for (const text of ["", "42", `${newId()}0`, newId().replaceAll("-", ""), `g${newId().slice(1)}`]) {
    assert.ok(!isId(text), text);
  }
});
