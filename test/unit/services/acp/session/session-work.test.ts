import { expect, it } from "vitest";
import { SessionWork } from "../../../../../src/services/acp/session/session-work.js";

const never = new AbortController().signal;
const untilAborted = async (signal: AbortSignal) => {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return signal.reason;
};

it("changes keep their order, and come before the next prompt", async () => {
  const work = new SessionWork();
  const done: string[] = [];
  const slow = work.change(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    done.push("slow");
  });
  const failing = work.change(async () => {
    throw new Error("no");
  });
  const quick = work.change(async () => void done.push("quick"));
  const prompt = work.prompt(async () => void done.push("prompt"), never);
  await expect(failing).rejects.toThrow("no");
  await Promise.all([slow, quick, prompt]);
  expect(done).toEqual(["slow", "quick", "prompt"]);
});

it("a prompt refuses what comes while it runs, until it is stopped", async () => {
  const work = new SessionWork();
  const prompt = work.prompt(untilAborted, never);
  expect(work.isBusy).toBe(true);
  await expect(work.prompt(untilAborted, never)).rejects.toMatchObject({ code: -32_600 });
  await expect(work.change(async () => undefined)).rejects.toMatchObject({ code: -32_600 });
  work.stop("enough");
  expect(await prompt).toBe("enough");
  expect(work.isBusy).toBe(false);
  expect(await work.change(async () => "next")).toBe("next");
});

it("an end stops the prompt, and lets nothing begin that waits", async () => {
  const work = new SessionWork();
  const prompt = work.prompt(untilAborted, never);
  await new Promise((resolve) => setImmediate(resolve));
  await work.close("the end");
  expect(await prompt).toBe("the end");
  await expect(work.change(async () => undefined)).rejects.toThrow("the session is closed");
  const other = new SessionWork();
  let release: () => void = () => undefined;
  const first = other.change(
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
  );
  const second = other.change(async () => "begun");
  second.catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  const closed = other.close("the end");
  release();
  await Promise.all([first, closed]);
  await expect(second).rejects.toThrow("the session is closed");
});
