import { describe, expect, it } from "vitest";
import { noteRequestSent, requestSent } from "../../../../../src/agent/model/endpoint/request-sent.js";

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

describe("requestSent", () => {
  it("keeps the process alive as long as somebody waits for it", async () => {
    const before = timers();
    const sent = requestSent({ withinMs: 20 });
    expect(timers()).toBe(before + 1);
    await sent;
    // Timers of the test runner's own end meanwhile.
    expect(timers()).toBeLessThanOrEqual(before);
  });

  it("resolves at once when a request is sent, and leaves no timer behind", async () => {
    const before = timers();
    const sent = requestSent({ withinMs: 60_000 });
    noteRequestSent();
    await sent;
    // Timers of the test runner's own end meanwhile.
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
