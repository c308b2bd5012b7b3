import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, type TestContext } from "vitest";
import { promised } from "../../guarantees.js";
import { silencedEngine } from "../../support/engine-proxy.js";
import { openTestSandbox, sandboxTest } from "../../support/sandbox.js";

describe.concurrent("a stream that falls silent without being closed", () => {
  sandboxTest(
    promised("kept.stream", "is opened again under calls: each has its whole result, once"),
    // Tests that run at the same time have to poll with the `expect` of their own.
    async ({ directory, expect }) => {
      await using proxy = await silencedEngine();
      await using opened = await openTestSandbox({ engine: proxy.engine, workspace: directory });
      const { sandbox } = opened;
      const lines = join(directory, "lines");
      const append = 'echo "$1" >> "$2"; sleep 1; seq 20000; exit "$1"';
      const running = sandbox.exec(["sh", "-c", append, "sh", "7", lines]);
      await expect.poll(() => sandbox.files.read(lines).then(String, () => "")).toBe("7\n");
      const streams = proxy.streams;
      proxy.silence();
      const silentSince = performance.now();
      // Its request never arrives on the stream there was, and its limit is over before that is noticed.
      const asked = sandbox.exec(["sh", "-c", append, "sh", "8", lines], { timeoutMs: 60_000 });
      const cut = sandbox.exec(["sleep", "301"], { timeoutMs: 200 });
      await expect.poll(() => proxy.streams, { interval: 50 }).toBe(streams + 1);
      expect(performance.now() - silentSince).toBeLessThan(10_000);
      const output = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join("");
      expect(await running).toMatchObject({ exitCode: 7, stdout: output });
      expect(await asked).toMatchObject({ exitCode: 8, stdout: output });
      expect(await cut).toMatchObject({ timedOut: true });
      expect(String(await sandbox.files.read(lines))).toBe("7\n8\n");
    },
  );
});

const caller = fileURLToPath(new URL("../../fixtures/call-and-tell.ts", import.meta.url));

/** A process of its own that makes calls in a sandbox and prints a line when it has begun and one for each result. */
function startCaller({
  directory,
  onTestFinished,
}: Pick<TestContext, "onTestFinished"> & { directory: string }): {
  process: ChildProcess;
  lines: AsyncIterator<string>;
} {
  const child = spawn(process.execPath, ["--import", "tsx", caller, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return { process: child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() };
}

// It waits for longer than the test above takes.
describe.concurrent("a host process that was stopped", () => {
  sandboxTest(
    "for longer than a call may take loses no call, and keeps its sandbox",
    async ({ directory, onTestFinished }) => {
      const host = startCaller({ directory, onTestFinished });
      expect((await host.lines.next()).value).toBe("begun");
      host.process.kill("SIGSTOP");
      // The call's limit, the grace of its kill, and as long as the host waits for a runner that does not answer.
      await sleep(18_000);
      host.process.kill("SIGCONT");
      const told = [await host.lines.next(), await host.lines.next(), await host.lines.next()];
      expect(told.map(({ value }) => value).sort()).toEqual([
        "long: code 3",
        "next: code 0",
        "short: code 124",
      ]);
      await once(host.process, "exit");
    },
  );
});
