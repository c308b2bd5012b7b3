import { onTestFinished } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { RunnerLink } from "../../../../src/sandbox/channel/runner-link.js";
import { FakeRunner } from "./fake-runner.js";

/** A link to a runner that the test plays. It is closed when the test has ended. */
export async function playedLink(): Promise<{ runner: FakeRunner; link: RunnerLink }> {
  const runner = new FakeRunner();
  const link = await RunnerLink.open({
    token: Buffer.alloc(32),
    dial: runner.dial,
    diagnose: async () => "runs",
    reconnectForMs: 5000,
    onLate: () => undefined,
  });
  const closed = new BrigError("the test is over", { code: "sandbox.gone", reason: "closed" });
  onTestFinished(() => link.close(closed));
  return { runner, link };
}
