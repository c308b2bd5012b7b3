import assert from "node:assert/strict";
import { test } from "node:test";
import { allocate, formatMoney, parseMoney, percentageOf } from "../src/money.js";

test("an amount is read and written back", () => {
  for (const text of ["0.00", "12.34", "-0.05", "1000000.99"]) assert.equal(formatMoney(parseMoney(text)), text);
  assert.equal(parseMoney("12.3"), 1230);
});

test("what is not an amount is refused", () => {
  for (const text of ["", "1,50", "1.234", "ten"]) assert.throws(() => parseMoney(text), RangeError);
});

test("half a cent is rounded away from zero", () => {
  assert.equal(percentageOf(50, 19), 10);
  assert.equal(percentageOf(-50, 19), -10);
});

test("shares add up to the amount", () => {
  assert.deepEqual(allocate(100, [1, 1, 1]), [34, 33, 33]);
  assert.deepEqual(allocate(1000, [1, 2]), [334, 666]);
  assert.deepEqual(allocate(7, [0, 0]), [0, 0]);
});
