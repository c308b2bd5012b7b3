import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type CallableTools, CallScheduler, type ToolCall } from "../../../src/tools/call-scheduler.js";
import { defineTool } from "../../../src/tools/define-tool.js";
import type { Tool } from "../../../src/tools/tool.js";

interface Planned {
  tool: "look" | "change" | "run";
  files: readonly string[];
  /** In steps of 2 ms. */
  delay: number;
  duration: number;
}

interface Span {
  index: number;
  start: number;
  end: number;
}

const parameters = z.object({ index: z.int(), duration: z.int(), files: z.array(z.string()) });

/** Tools that note when they ran, in ticks that only ever grow. */
function journal() {
  let tick = 0;
  const spans: Span[] = [];
  const tool = (name: Planned["tool"]): Tool =>
    defineTool({
      name,
      description: name,
      parameters,
      supportsParallel: name !== "run",
      changedFiles: name === "change" ? ({ files }) => files : undefined,
      async run({ index, duration }, { signal }) {
        const span = { index, start: tick++, end: Number.POSITIVE_INFINITY };
        spans.push(span);
        try {
          await sleep(duration * 2, undefined, { signal });
        } finally {
          span.end = tick++;
        }
        return { content: `output ${index}`, success: true };
      },
    });
  const tools = new Map((["look", "change", "run"] as const).map((name) => [name as string, tool(name)]));
  const registry: CallableTools = {
    has: (name) => tools.has(name),
    get: (name) => tools.get(name)!,
    refusalOf: () => null,
  };
  return { spans, registry };
}

const planned: fc.Arbitrary<Planned> = fc.record({
  tool: fc.constantFrom("look" as const, "change" as const, "run" as const),
  files: fc.uniqueArray(fc.constantFrom("/a", "/a/b", "/ab", "/c"), { minLength: 1, maxLength: 2 }),
  delay: fc.integer({ min: 0, max: 2 }),
  duration: fc.integer({ min: 0, max: 4 }),
});

function mayOverlap(one: Planned, other: Planned): boolean {
  if (one.tool === "look" && other.tool === "look") return true;
  if (one.tool !== "change" || other.tool !== "change") return false;
  const isBelow = (a: string, b: string) => a === b || a.startsWith(`${b}/`);
  return !one.files.some((a) => other.files.some((b) => isBelow(a, b) || isBelow(b, a)));
}

async function play(calls: readonly Planned[], signal: AbortSignal) {
  const { spans, registry } = journal();
  const scheduler = new CallScheduler(registry, { signal });
  const running = [];
  for (const [index, { tool, files, delay, duration }] of calls.entries()) {
    if (delay > 0) await sleep(delay * 2);
    const input = JSON.stringify({ index, duration, files });
    const call: ToolCall = { callId: `c${index}`, name: tool, kind: "function", input };
    running.push(scheduler.run(call));
  }
  return { outcomes: await Promise.all(running), spans };
}

const aborted = /^aborted by user after \d+\.\ds$/;

describe("calls of any tools at any times", () => {
  it("never run beside one they must not, start in their order where they wait, and answer in their order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(planned, { maxLength: 8 }), async (calls) => {
        const { outcomes, spans } = await play(calls, new AbortController().signal);
        expect(outcomes.map(({ content }) => content)).toEqual(calls.map((_, index) => `output ${index}`));
        expect(spans).toHaveLength(calls.length);
        for (const one of spans)
          for (const other of spans) {
            if (one.index >= other.index || mayOverlap(calls[one.index]!, calls[other.index]!)) continue;
            expect(one.end).toBeLessThan(other.start);
          }
      }),
      { numRuns: 40 },
    );
  });

  it("are all ended by a cancel, and each has an output", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(planned, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 0, max: 20 }),
        async (calls, afterMs) => {
          const { outcomes, spans } = await play(calls, AbortSignal.timeout(afterMs));
          expect(spans.every(({ end }) => end < Number.POSITIVE_INFINITY)).toBe(true);
          for (const [index, { content, success }] of outcomes.entries())
            expect(success ? content === `output ${index}` : aborted.test(content), content).toBe(true);
        },
      ),
      { numRuns: 40 },
    );
  });

  it("run at the same time where all of them may", async () => {
    const look: Planned = { tool: "look", files: ["/a"], delay: 0, duration: 15 };
    const changes = ["/a", "/b", "/c"].map((file): Planned => ({ ...look, tool: "change", files: [file] }));
    for (const calls of [[look, look, look], changes]) {
      const { spans } = await play(calls, new AbortController().signal);
      expect(Math.max(...spans.map(({ start }) => start))).toBeLessThan(
        Math.min(...spans.map(({ end }) => end)),
      );
    }
  });
});
