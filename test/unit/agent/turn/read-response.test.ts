import { describe, expect, it } from "vitest";
import type { ModelClient } from "../../../../src/agent/model/model-client.js";
import { RestorePoints } from "../../../../src/agent/restore-points/restore-points.js";
import { noSessionLog } from "../../../../src/agent/session/write/session-file.js";
import { type ResponseContext, readResponse } from "../../../../src/agent/turn/read-response.js";
import { Transcript } from "../../../../src/agent/turn/transcript.js";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

describe("an interrupt that comes when the response is complete", () => {
  it("ends the turn, with the output of each call kept", async () => {
    const stop = new AbortController();
    const reason = new Error("interrupted");
    const model: ModelClient = {
      provider: "test",
      model: "test",
      maxStreamRetries: 0,
      async *stream() {
        const call = { name: "update_plan", arguments: '{"plan":[]}' };
        yield { kind: "item", item: { type: "function_call", call_id: "c1", ...call } };
        yield { kind: "completed", usage: null };
        stop.abort(reason);
      },
    };
    const sandbox = new MemorySandbox();
    const kept: unknown[] = [];
    const transcript = new Transcript({
      log: { ...noSessionLog, append: (record) => void kept.push(record) },
      onEvent: undefined,
      truncation: { mode: "tokens", limit: 100 },
      fixedTokens: 0,
      initialItems: undefined,
      usage: undefined,
    });
    const context: ResponseContext = {
      model,
      tools: createToolRegistry(sandbox, { cwd: "/" }),
      sandboxReady: Promise.resolve(sandbox),
      transcript,
      restorePoints: new RestorePoints(transcript),
      stop,
      signal: stop.signal,
    };
    const request = { instructions: "", input: [], tools: [] } as never;
    await expect(readResponse(request, context)).rejects.toBe(reason);
    expect(JSON.stringify(kept)).toContain('"type":"function_call_output","call_id":"c1"');
  });
});
