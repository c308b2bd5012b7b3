import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { describe, expect } from "vitest";
import { sandboxTest } from "../../support/sandbox.js";

const fiveMegabytes = randomBytes(5_000_000);

describe("input for a command", () => {
  sandboxTest("5 MB arrive whole, end, and the answer comes back", async ({ sandbox }) => {
    const counted = await sandbox.exec(["wc", "-c"], { stdin: fiveMegabytes });
    expect(counted.stdout).toBe("5000000\n");
    const digest = createHash("sha256").update(fiveMegabytes).digest("hex");
    expect((await sandbox.exec(["sha256sum"], { stdin: fiveMegabytes })).stdout).toBe(`${digest}  -\n`);
  });

  sandboxTest("5 MB go through and come back the same", async ({ sandbox }) => {
    const result = await sandbox.exec(["cat"], { stdin: fiveMegabytes, encoding: "buffer" });
    expect(result.stdout.equals(fiveMegabytes)).toBe(true);
  });

  sandboxTest("without any it is at its end at once", async ({ sandbox }) => {
    expect((await sandbox.exec(["cat"])).output).toBe("");
    expect((await sandbox.exec(["cat"], { stdin: "" })).output).toBe("");
    const spawned = await sandbox.spawn(["cat"], { stdin: "closed" });
    expect(spawned.stdin).toBeNull();
    expect((await spawned.exit).exitCode).toBe(0);
  });

  sandboxTest("text is sent as UTF-8", async ({ sandbox }) => {
    expect((await sandbox.exec(["cat"], { stdin: "añ漢🙂" })).stdout).toBe("añ漢🙂");
  });

  sandboxTest("a command that never reads it ends all the same", async ({ sandbox }) => {
    const result = await sandbox.exec(["sh", "-c", "echo done; exit 3"], { stdin: fiveMegabytes });
    expect(result).toMatchObject({ exitCode: 3, stdout: "done\n" });
  });

  sandboxTest("a command that reads only the first line leaves the rest", async ({ sandbox }) => {
    const stdin = `first\n${"x".repeat(3_000_000)}`;
    expect((await sandbox.exec(["head", "-n", "1"], { stdin })).stdout).toBe("first\n");
  });

  sandboxTest("a command that never reads and never ends is ended by its timeout", async ({ sandbox }) => {
    const result = await sandbox.exec(["sleep", "300"], { stdin: fiveMegabytes, timeoutMs: 300 });
    expect(result).toMatchObject({ timedOut: true, exitCode: 124 });
  });

  sandboxTest("the caller's buffer may change once the call has its result", async ({ sandbox }) => {
    const data = Buffer.alloc(100_000, "a");
    const result = await sandbox.exec(["cat"], { stdin: data });
    data.fill("b");
    expect(result.stdout).toBe("a".repeat(100_000));
  });
});

describe("the streams of a spawned process", () => {
  sandboxTest("closing stdin half-closes: the answer still comes", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["sh", "-c", "wc -c; echo after"]);
    const answer = text(spawned.stdout);
    await pipeline(Readable.from([fiveMegabytes.subarray(0, 2_000_000), Buffer.from("end")]), spawned.stdin!);
    expect(await answer).toBe("2000003\nafter\n");
    expect((await spawned.exit).exitCode).toBe(0);
  });

  sandboxTest("a conversation line by line", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["sh", "-c", 'while read -r line; do echo "<$line>"; done']);
    for (const word of ["one", "two", "three"]) {
      spawned.stdin!.write(`${word}\n`);
      const [answer] = await once(spawned.stdout, "data");
      expect(String(answer)).toBe(`<${word}>\n`);
    }
    spawned.stdin!.end();
    spawned.stdout.resume();
    expect((await spawned.exit).exitCode).toBe(0);
  });

  sandboxTest("stdin holds its writer back while nobody reads", async ({ sandbox }) => {
    const spawned = await sandbox.spawn([
      "sh",
      "-c",
      "until test -e /tmp/read; do sleep 0.02; done; cat | wc -c",
    ]);
    let written = 0;
    const piece = Buffer.alloc(64 * 1024);
    const writing = (async () => {
      for (let i = 0; i < 64; i++) {
        if (!spawned.stdin!.write(piece)) await once(spawned.stdin!, "drain");
        written += piece.length;
      }
      spawned.stdin!.end();
    })();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(written).toBeLessThan(1_000_000);
    await sandbox.files.write("/tmp/read", "");
    await writing;
    expect(await text(spawned.stdout)).toBe("4194304\n");
  });

  sandboxTest("writing to a process that has ended harms nobody", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["true"]);
    await spawned.exit;
    const errors: unknown[] = [];
    spawned.stdin!.on("error", (error) => errors.push(error));
    spawned.stdin!.write("too late");
    spawned.stdin!.end();
    expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
    expect(errors.length).toBeLessThanOrEqual(1);
  });

  sandboxTest("both streams through one pipe keep their exact order", async ({ sandbox }) => {
    const script = "import os\nfor i in range(2000):\n  os.write(1 + i % 2, b'%d\\n' % i)";
    const spawned = await sandbox.spawn(["python3", "-c", script], { mergeOutput: true, stdin: "closed" });
    expect(spawned.stderr).toBeNull();
    const expected = Array.from({ length: 2000 }, (_, i) => `${i}\n`).join("");
    expect(await text(spawned.stdout)).toBe(expected);
  });

  sandboxTest("100 MB are read at the reader's pace", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["head", "-c", "100000000", "/dev/zero"], { stdin: "closed" });
    let bytes = 0;
    for await (const chunk of spawned.stdout) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(100_000_000);
  });

  sandboxTest("a program that cannot be started says so on stderr and in its exit", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["no-such-program"], { stdin: "closed" });
    const [said, exit] = await Promise.all([buffer(spawned.stderr!), spawned.exit]);
    expect(said.toString()).toContain("no-such-program: command not found");
    expect(exit).toMatchObject({
      exitCode: 127,
      startFailure: { stage: "exec", errno: "ENOENT", message: "no-such-program: command not found" },
    });
  });
});
