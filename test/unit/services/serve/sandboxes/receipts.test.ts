import { expect, it } from "vitest";
import type { Receipt, Sandbox } from "../../../../../src/sandbox/index.js";
import { Capacity } from "../../../../../src/services/serve/sandboxes/capacity.js";
import { SandboxSet } from "../../../../../src/services/serve/sandboxes/sandbox-set.js";

const signal = new AbortController().signal;
const receiptOf = (omitted: number): Receipt => ({ findings: [], omitted, incomplete: null });

it("keeps the receipts of the latest sandboxes that were removed, each for its own client", async () => {
  let count = 0;
  const sandboxes = new SandboxSet({
    capacity: new Capacity({ maxPlaces: 1, maxPerClient: 1, maxWaiting: 0 }),
    open: async () => {
      const receipt = receiptOf(count++);
      return {
        sandbox: {} as unknown as Sandbox,
        ...{ image: "i", mode: "workspace-write", network: "none", task: null, instruction: null },
        ...{ workingDirectory: "/", grade: null, onEnding: null, close: async () => receipt },
      };
    },
    ...{ idleMs: 3_600_000, maxLifeMs: 3_600_000, onWarning: () => undefined },
  });
  const ids: string[] = [];
  for (let at = 0; at < 1025; at++) {
    const { id } = await sandboxes.create("one", {}, { signal });
    ids.push(id);
    expect(() => sandboxes.receipt("one", id)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
    await sandboxes.remove("one", id);
  }
  const unknown = expect.objectContaining({ code: "serve.unknown" });
  expect(() => sandboxes.receipt("one", ids[0] as string)).toThrow(unknown);
  expect(sandboxes.receipt("one", ids[1] as string)).toEqual(receiptOf(1));
  expect(sandboxes.receipt("one", ids[1024] as string)).toEqual(receiptOf(1024));
  expect(() => sandboxes.receipt("two", ids[1024] as string)).toThrow(unknown);
});
