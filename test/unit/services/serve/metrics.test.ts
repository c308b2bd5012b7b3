import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import type { Call, Calls } from "../../../../src/services/serve/http/response.js";
import { Metrics } from "../../../../src/services/serve/metrics.js";

const call = (signal = new AbortController().signal) => ({ signal }) as Call<"health">;
const failing = (error: Error) => ({ health: async () => await Promise.reject(error) }) as unknown as Calls;

describe("metrics", () => {
  it("are in the text format of Prometheus, each with its type", () => {
    const text = new Metrics().text({ added: 3, open: 2, waiting: 0, warm: 0, auditLost: 0 });
    expect(text).toContain("# TYPE brig_sandboxes_created_total counter\nbrig_sandboxes_created_total 3\n");
    expect(text).toContain("# TYPE brig_sandboxes gauge\nbrig_sandboxes 2\n");
    for (const line of text.trimEnd().split("\n"))
      expect(line).toMatch(/^(?:# (?:HELP|TYPE) \w+ .+|\w+(?:\{\w+="[^"]*"\})? [0-9.]+)$/);
    expect(text.endsWith("\n")).toBe(true);
  });

  it("count failures by their codes, and not that a client has gone", async () => {
    const metrics = new Metrics();
    const missing = new BrigError("none", { code: "image.missing" });
    const gone = new AbortController();
    gone.abort();
    for (const [error, signal] of [
      [missing],
      [missing],
      [new TypeError("a fault")],
      [missing, gone.signal],
    ] as const)
      await expect(metrics.counted(failing(error)).health(call(signal))).rejects.toBe(error);
    const text = metrics.text({ added: 0, open: 0, waiting: 0, warm: 0, auditLost: 0 });
    expect(text).toContain("# TYPE brig_failures_total counter\n");
    expect(text).toContain('brig_failures_total{code="image.missing"} 2\n');
    expect(text).toContain('brig_failures_total{code="serve.failed"} 1\n');
  });

  it("count commands in buckets that include the shorter ones", async () => {
    const metrics = new Metrics();
    for (const seconds of [0.01, 0.2, 0.2, 4000]) metrics.countExec(seconds);
    expect(await metrics.timed(Promise.resolve("result"))).toBe("result");
    await expect(metrics.timed(Promise.reject(new Error("not started")))).rejects.toThrow("not started");
    const text = metrics.text({ added: 0, open: 0, waiting: 0, warm: 0, auditLost: 0 });
    const bucket = (bound: string) => `brig_exec_duration_seconds_bucket{le="${bound}"}`;
    expect(text).toContain("# TYPE brig_exec_duration_seconds histogram\n");
    expect(text).toContain(`${bucket("0.01")} 2\n`);
    expect(text).toContain(`${bucket("0.25")} 4\n${bucket("0.5")} 4\n`);
    expect(text).toContain(`${bucket("3600")} 4\n${bucket("+Inf")} 5\n`);
    expect(text).toContain("brig_exec_duration_seconds_count 5\n");
    expect(text).toMatch(/brig_exec_duration_seconds_sum 4000\.4\d+\n/);
  });
});
