import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { promised } from "../../guarantees.js";
import type { BreakableSandbox } from "../../support/open-sandbox.js";
import { runningCommands } from "../../support/processes.js";
import { sandboxTest } from "../../support/sandbox.js";

/** Cuts the stream again and again until it is disposed of. */
function keepBreaking(sandbox: BreakableSandbox, everyMs: number): Disposable & { readonly count: number } {
  let count = 0;
  const timer = setInterval(() => {
    sandbox.link.breakStream();
    count++;
  }, everyMs);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

describe("a stream that breaks", () => {
  sandboxTest("while nothing runs is opened again unnoticed", async ({ sandbox }) => {
    for (let i = 0; i < 5; i++) {
      sandbox.link.breakStream();
      expect((await sandbox.exec(["echo", String(i)])).stdout).toBe(`${i}\n`);
    }
    sandbox.link.breakStream();
    sandbox.link.breakStream();
    await sandbox.ping();
  });

  sandboxTest("loses no output and doubles none", async ({ sandbox }) => {
    using breaking = keepBreaking(sandbox, 40);
    const script = "for i in $(seq 60); do seq $((i*1000)) $((i*1000+999)); sleep 0.05; done; exit 9";
    const result = await sandbox.exec(["bash", "-c", script]);
    expect(breaking.count).toBeGreaterThan(10);
    expect(result.exitCode).toBe(9);
    expect(result.stdout).toBe(Array.from({ length: 60_000 }, (_, i) => `${i + 1000}\n`).join(""));
  });

  sandboxTest("in the middle of a flood loses no byte of it", async ({ sandbox }) => {
    using breaking = keepBreaking(sandbox, 100);
    const hash = createHash("sha256");
    const script = "import sys\nfor i in range(4_000_000): sys.stdout.write('%d\\n' % i)";
    let bytes = 0;
    await sandbox.exec(["python3", "-c", script], {
      maxOutputBytes: 0,
      onStdout: async (chunk) => {
        hash.update(chunk);
        bytes += chunk.length;
        if (bytes % 64 === 0) await sleep(1);
      },
    });
    const expected = createHash("sha256");
    for (let i = 0; i < 4_000_000; i += 10_000)
      expected.update(Array.from({ length: 10_000 }, (_, k) => `${i + k}\n`).join(""));
    expect(breaking.count).toBeGreaterThan(0);
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
  });

  sandboxTest(promised("kept.stream", "does nothing twice"), async ({ sandbox, workspace }) => {
    using _ = keepBreaking(sandbox, 60);
    const append = (i: number) =>
      sandbox.exec(["sh", "-c", 'echo "$1" >> "$2"', "sh", String(i), `${workspace}/lines`]);
    for (let i = 0; i < 300; i += 10)
      await Promise.all(Array.from({ length: 10 }, (_unused, k) => append(i + k)));
    const lines = (await sandbox.files.read(`${workspace}/lines`)).toString().trim().split("\n");
    expect(lines.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_unused, i) => i));
  });

  sandboxTest("while a megabyte a second flows both ways loses none of it", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["cat"]);
    const sent = createHash("sha256");
    const received = createHash("sha256");
    spawned.stdout.on("data", (chunk: Buffer) => received.update(chunk));
    {
      using breaking = keepBreaking(sandbox, 150);
      for (let i = 0; i < 60; i++) {
        const piece = randomBytes(50_000);
        sent.update(piece);
        spawned.stdin!.write(piece);
        await sleep(50);
      }
      expect(breaking.count).toBeGreaterThan(10);
      spawned.stdin!.end();
      expect((await spawned.exit).exitCode).toBe(0);
    }
    expect(received.digest("hex")).toBe(sent.digest("hex"));
  });

  sandboxTest("under a file operation neither cuts nor doubles it", async ({ sandbox, workspace }) => {
    using breaking = keepBreaking(sandbox, 30);
    for (let i = 0; i < 5; i++) {
      const data = randomBytes(6_000_000 + i);
      await sandbox.files.write(`${workspace}/large`, data);
      expect((await sandbox.files.read(`${workspace}/large`)).equals(data)).toBe(true);
    }
    expect(breaking.count).toBeGreaterThan(3);
  });

  sandboxTest("does not hide the end of a command that ended meanwhile", async ({ sandbox }) => {
    const call = sandbox.exec(["sh", "-c", "echo out; exit 3"]);
    sandbox.link.breakStream();
    expect(await call).toMatchObject({ exitCode: 3, stdout: "out\n" });
  });

  sandboxTest("does not lose an abort", async ({ sandbox }) => {
    const controller = new AbortController();
    const call = sandbox.exec(["sleep", "301"], { signal: controller.signal });
    await sleep(50);
    sandbox.link.breakStream();
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    expect(await runningCommands(sandbox)).toEqual([]);
  });

  sandboxTest("does not stop a timeout", async ({ sandbox }) => {
    using _ = keepBreaking(sandbox, 20);
    const result = await sandbox.exec(["sleep", "301"], { timeoutMs: 300 });
    expect(result).toMatchObject({ timedOut: true, exitCode: 124 });
  });

  sandboxTest("leaves a terminal as it was", async ({ sandbox }) => {
    const script = 'stty -echo; while read -r line; do echo "got $line"; done';
    const spawned = await sandbox.spawn(["bash", "-c", script], { pty: { rows: 24, cols: 80 } });
    let text = "";
    spawned.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    using _ = keepBreaking(sandbox, 30);
    for (let i = 0; i < 20; i++) {
      spawned.stdin!.write(`${i}\n`);
      await expect.poll(() => text, { interval: 5 }).toContain(`got ${i}\r\n`);
    }
    await spawned.kill();
  });

  sandboxTest("cut at every moment of many short calls never confuses them", async ({ sandbox }) => {
    const results = [];
    for (let i = 0; i < 120; i++) {
      const call = sandbox.exec(["sh", "-c", `echo ${i}; exit ${i}`]);
      for (let turn = 0; turn < i % 12; turn++) await new Promise(setImmediate);
      if (i % 3 === 0) sandbox.link.breakStream();
      results.push(await call);
    }
    expect(results.map(({ exitCode }) => exitCode)).toEqual(results.map((_, i) => i));
    expect(results.map(({ stdout }) => stdout)).toEqual(results.map((_, i) => `${i}\n`));
  });
});
