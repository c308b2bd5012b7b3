import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PortableSandbox } from "../../../src/sandbox/portable-sandbox.js";
import { Sandbox } from "../../../src/sandbox/sandbox.js";
import { openServed, type Served } from "../../support/served.js";

let served: Served;

beforeAll(async () => {
  served = await openServed();
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

const opened: [string, (env: Record<string, string>) => Promise<PortableSandbox>][] = [
  ["this process", (env) => Sandbox.create({ workspaceKind: "none", env })],
  ["a service", (env) => served.client.createSandbox({ env })],
];

describe.each(opened)(
  "a program that asks for no more than a PortableSandbox, in a sandbox of %s",
  (_, open) => {
    let sandbox: PortableSandbox;

    beforeAll(async () => {
      sandbox = await open({ GIVEN: "to all", GONE: "x", LOST: "y" });
    });

    afterAll(async () => {
      await sandbox.close();
    });

    it("knows its name, its image and where its commands start", async () => {
      expect(sandbox.id).toMatch(/./);
      expect(sandbox.image).toContain("brig/base");
      expect((await sandbox.exec(["pwd"])).stdout).toBe(`${sandbox.workingDirectory}\n`);
    });

    it("gets the same result of the same command", async () => {
      const result = await sandbox.exec(["sh", "-c", "cat; pwd; echo $OWN >&2; exit 3"], {
        ...{ stdin: "in\n", cwd: "/tmp", env: { OWN: "own" }, timeoutMs: 60_000, endsTree: true },
      });
      expect(result).toMatchObject({
        ...{ exitCode: 3, signal: null, stdout: "in\n/tmp\n", stderr: "own\n", timedOut: false },
        ...{ truncated: false, omittedBytes: { stdout: 0, stderr: 0 }, outOfMemory: false, treeEnded: false },
      });
      expect(result.causes).toEqual([]);
    });

    it("removes a variable by null and by undefined", async () => {
      const env = { GONE: null, LOST: undefined };
      const { stdout } = await sandbox.exec(
        ["sh", "-c", 'echo "$GIVEN $(printenv GONE LOST || echo gone)"'],
        { env },
      );
      expect(stdout).toBe("to all gone\n");
    });

    it("gets bytes, and what was cut", async () => {
      const bytes = Buffer.from([0, 255, 254, 10, 0xc3]);
      expect((await sandbox.exec(["cat"], { stdin: bytes, encoding: "buffer" })).stdout).toEqual(bytes);
      const { truncated, omittedBytes } = await sandbox.exec(["seq", "100000"], { maxOutputBytes: 1000 });
      expect(truncated).toBe(true);
      expect(omittedBytes.stdout).toBeGreaterThan(500_000);
    });

    it("gets a timeout as a result, and an abort as the signal's reason", async () => {
      expect(await sandbox.exec(["sleep", "1000"], { timeoutMs: 300 })).toMatchObject({
        ...{ timedOut: true, exitCode: 124 },
      });
      const abort = new AbortController();
      const running = sandbox.exec(["sleep", "1000"], { signal: abort.signal });
      abort.abort(new Error("enough"));
      await expect(running).rejects.toThrow("enough");
    });

    it("writes, reads and removes files, with the same errors", async () => {
      const { files } = sandbox;
      await files.write("/tmp/script", "echo from a file\n", { mode: 0o755 });
      expect((await files.read("/tmp/script", { offsetBytes: 5, lengthBytes: 4 })).toString()).toBe("from");
      expect((await sandbox.exec(["/bin/sh", "-c", "test -x /tmp/script && sh /tmp/script"])).stdout).toBe(
        "from a file\n",
      );
      await files.remove("/tmp/script");
      await expect(files.read("/tmp/script")).rejects.toMatchObject({ code: "file.not-found" });
      await expect(files.remove("/tmp/script")).rejects.toMatchObject({ code: "file.not-found" });
      await files.remove("/tmp/script", { force: true });
    });

    it("may close it twice", async () => {
      const other = await open({});
      await other.close();
      await other.close();
      await expect(other.exec(["true"])).rejects.toMatchObject({
        code: expect.stringMatching(/^(sandbox\.gone|serve\.unknown)$/),
      });
    });
  },
);
