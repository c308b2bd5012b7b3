import { expect, it, vi } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import { takeOver } from "../../../../../src/services/serve/kept/take-over.js";

const unanswered = new BrigError("the engine does not answer", { code: "engine.unreachable" });
const gone = new BrigError("its container has ended", { code: "sandbox.gone", reason: "closed" });

/** A take-over whose attempts end one after the other as given: null is a success. */
function attempts(...ends: (Error | null)[]) {
  const told: unknown[] = [];
  const givenUp = vi.fn();
  const take = vi.fn(async () => {
    const end = ends.shift();
    if (end != null) throw end;
  });
  const over = new AbortController();
  const onWarning = (error: unknown) => void told.push(error);
  const first = takeOver({ take, giveUp: givenUp, signal: over.signal, onWarning });
  return { first, told, givenUp, take, over };
}

it("asks an engine again that fails, while its caller goes on, and tells of the first failure only", async () => {
  const { first, told, givenUp, take } = attempts(unanswered, unanswered, null);
  await first;
  expect(take).toHaveBeenCalledTimes(1);
  await expect.poll(() => take.mock.calls.length).toBe(3);
  expect([told, givenUp.mock.calls]).toEqual([[unanswered], []]);
});

it("gives up what is gone, at once or after the engine has answered", async () => {
  const atOnce = attempts(gone);
  await atOnce.first;
  expect([atOnce.told, atOnce.givenUp.mock.calls]).toEqual([[gone], [[gone]]]);
  const later = attempts(unanswered, gone);
  await later.first;
  expect(later.givenUp).not.toHaveBeenCalled();
  await expect.poll(() => later.givenUp.mock.calls).toEqual([[gone]]);
  expect(later.told).toEqual([unanswered, gone]);
});

it("asks no more once its signal is aborted", async () => {
  const { first, take, over, told, givenUp } = attempts(unanswered, null);
  await first;
  over.abort();
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect([take.mock.calls.length, told, givenUp.mock.calls]).toEqual([1, [unanswered], []]);
});
