import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LABELS } from "../../../src/sandbox/labels.js";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { testEngine } from "../../support/engine.js";
import { openServed, type Served } from "../../support/served.js";

let served: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  served = await openServed();
  sandbox = await served.client.createSandbox({ env: { GIVEN: "to all", GONE: "x" } });
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

describe("a command over HTTP", () => {
  it("has input, variables, a directory, both outputs and an exit code", async () => {
    const result = await sandbox.exec(
      ["sh", "-c", 'cat; pwd; echo "$GIVEN $OWN $(printenv GONE || echo gone)" >&2; exit 3'],
      {
        stdin: "in\n",
        cwd: "/tmp",
        env: { OWN: "own", GONE: null },
      },
    );
    expect(result).toMatchObject({
      exitCode: 3,
      stdout: "in\n/tmp\n",
      stderr: "to all own gone\n",
      timedOut: false,
      truncated: false,
    });
  });

  it("gives and takes bytes that are not text", async () => {
    const bytes = Buffer.from([0, 255, 254, 10, 0xc3]);
    const { stdout } = await sandbox.exec(["cat"], { stdin: bytes, encoding: "buffer" });
    expect(stdout).toEqual(bytes);
  });

  it("is ended with its tree when its time is over", async () => {
    const result = await sandbox.exec(["sh", "-c", "sleep 1000 & echo begun; sleep 1000"], {
      timeoutMs: 300,
    });
    expect(result).toMatchObject({ timedOut: true, exitCode: 124, stdout: "begun\n" });
  });

  it("says what was cut of a long output", async () => {
    const result = await sandbox.exec(["seq", "100000"], { maxOutputBytes: 1000 });
    expect(result.truncated).toBe(true);
    expect(result.stdout.length).toBeLessThan(1200);
    expect(result.omittedBytes.stdout).toBeGreaterThan(500_000);
  });

  it("refuses a directory that is not there, with the error of the library", async () => {
    await expect(sandbox.exec(["true"], { cwd: "/nowhere" })).rejects.toMatchObject({ code: "exec.bad-cwd" });
  });
});

describe("a streamed command", () => {
  it("passes all of its output on, in pieces and in order", async () => {
    let bytes = 0;
    const stderr: string[] = [];
    const exit = await sandbox.stream(["sh", "-c", "head -c 3000000 /dev/zero; echo end >&2; exit 4"], {
      onStdout: (chunk) => {
        bytes += chunk.length;
      },
      onStderr: (chunk) => void stderr.push(Buffer.from(chunk).toString()),
    });
    expect(exit).toMatchObject({ exitCode: 4, signal: null, timedOut: false });
    expect(bytes).toBe(3_000_000);
    expect(stderr.join("")).toBe("end\n");
  });

  it("is ended when its client goes", async () => {
    const gone = new AbortController();
    const running = sandbox.stream(["sh", "-c", "echo $$; exec sleep 4321"], {
      signal: gone.signal,
      onStdout: () => gone.abort(new Error("the client goes")),
    });
    await expect(running).rejects.toThrow("the client goes");
    await expect.poll(() => isRunning("4321"), { timeout: 30_000 }).toBe(false);
  });

  it("reports an error that comes before its first output", async () => {
    await expect(sandbox.stream(["true"], { cwd: "/nowhere" })).rejects.toMatchObject({
      code: "exec.bad-cwd",
    });
  });
});

describe("why a command failed", () => {
  const full = (path: string) => ({
    kind: "full-directory",
    path,
    lacks: "bytes",
    limit: expect.any(Number),
    wasFull: false,
  });
  const fill = (path: string) => ["sh", "-c", `head -c 200000000 /dev/zero > ${path}/x`];

  it("is in the answer, and nothing is of a command that did not fail", async () => {
    await using other = await served.client.createSandbox({
      mode: "danger-full-access",
      limits: { memoryMb: 160 },
    });
    const hog = ["python3", "-c", "x = bytearray(400_000_000); x[::4096] = b'x' * len(x[::4096])"];
    expect(await other.exec(hog)).toMatchObject({
      outOfMemory: true,
      causes: [{ kind: "memory-limit", limitBytes: 160 * 1024 ** 2 }],
    });
    expect((await other.exec(["true"])).causes).toEqual([]);
  });

  it("is in the answer with bytes, and at the end of a stream", async () => {
    await using other = await served.client.createSandbox();
    expect((await other.exec(fill("/dev/shm"), { encoding: "buffer" })).causes).toEqual([full("/dev/shm")]);
    await other.files.remove("/dev/shm/x");
    expect((await other.stream(fill("/dev/shm"))).causes).toEqual([full("/dev/shm")]);
    await other.files.remove("/dev/shm/x");
    expect((await other.stream(["false"])).causes).toEqual([]);
  });
});

it("a command whose answer nobody waits for any more is ended", async () => {
  const gone = new AbortController();
  const running = sandbox.exec(["sleep", "8765"], { signal: gone.signal });
  await expect.poll(() => isRunning("8765"), { timeout: 30_000 }).toBe(true);
  gone.abort(new Error("the client goes"));
  await expect(running).rejects.toThrow("the client goes");
  await expect.poll(() => isRunning("8765"), { timeout: 30_000 }).toBe(false);
});

describe("files", () => {
  it("are written, read in parts, listed and removed, whatever their names and bytes", async () => {
    const name = "a b\n\u00e9?&=#%2e.bin";
    const path = `/tmp/deep/er/${name}`;
    const bytes = Buffer.from([0, 1, 2, 255, 254]);
    await sandbox.files.write(path, bytes, { parents: true, mode: 0o755 });
    expect(await sandbox.files.read(path)).toEqual(bytes);
    expect(await sandbox.files.read(path, { offsetBytes: 3, lengthBytes: 10 })).toEqual(
      Buffer.from([255, 254]),
    );
    const { entries, truncated } = await sandbox.files.list("/tmp/deep/er");
    expect(entries).toEqual([{ name, nameBytes: Buffer.from(name), type: "file" }]);
    expect(truncated).toBe(false);
    expect((await sandbox.exec(["stat", "-c", "%a", path])).stdout).toBe("755\n");
    await sandbox.files.write(path, "");
    expect(await sandbox.files.read(path)).toEqual(Buffer.alloc(0));
    await sandbox.files.remove("/tmp/deep", { recursive: true });
    await expect(sandbox.files.read(path)).rejects.toMatchObject({ code: "file.not-found", errno: "ENOENT" });
  });

  it("never reach the host: every path is resolved inside", async () => {
    await sandbox.exec(["ln", "-s", "/../../../../../../etc/hostname", "/tmp/out"]);
    const inside = (await sandbox.exec(["hostname"])).stdout;
    expect((await sandbox.files.read("/tmp/out")).toString()).toBe(inside);
    expect((await sandbox.files.read("/tmp/../../../etc/hostname")).toString()).toBe(inside);
    await expect(sandbox.files.write("/usr/bin/x", "x")).rejects.toMatchObject({ code: "file.read-only" });
  });

  it("of endless size, FIFOs and devices are refused", async () => {
    await sandbox.exec(["sh", "-c", "truncate -s 100G /tmp/huge; mkfifo /tmp/fifo"]);
    await expect(sandbox.files.read("/tmp/huge")).rejects.toMatchObject({ code: "file.too-large" });
    await expect(sandbox.files.read("/tmp/fifo")).rejects.toMatchObject({ code: "file.not-regular" });
    await expect(sandbox.files.read("/dev/zero")).rejects.toMatchObject({ code: "file.not-regular" });
    await expect(sandbox.files.read("relative")).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(sandbox.files.read("/a\0b")).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("are listed up to a limit, which the answer says", async () => {
    await sandbox.exec(["sh", "-c", "mkdir /tmp/many && cd /tmp/many && seq 10050 | xargs touch"]);
    const { entries, truncated } = await sandbox.files.list("/tmp/many");
    expect(entries.length).toBe(10_000);
    expect(truncated).toBe(true);
  });
});

it("a sandbox is as it was asked for", async () => {
  await using other = await served.client.createSandbox({
    mode: "danger-full-access",
    user: "nobody",
    limits: { memoryMb: 256, cpus: 0.5, pids: 64 },
    workingDirectory: "/tmp",
  });
  expect(other.record).toMatchObject({
    mode: "danger-full-access",
    image: "brig/base",
    workingDirectory: "/tmp",
  });
  const { stdout } = await other.exec([
    "sh",
    "-c",
    "id -un; pwd; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max 2>/dev/null",
  ]);
  expect(stdout).toBe(`nobody\n/tmp\n${256 * 1024 * 1024}\n64\n`);
});

it("less memory than the mode has makes the directories in memory smaller", async () => {
  await using other = await served.client.createSandbox({
    mode: "workspace-write",
    limits: { memoryMb: 256 },
  });
  const { stdout } = await other.exec(["df", "--block-size=1M", "--output=size", "/tmp"]);
  expect(stdout.trim().split(/\s+/).at(-1)).toBe("64");
});

it("what a sandbox cannot be is refused, and leaves no container", async () => {
  const before = await ownContainers();
  const create = async (options: object) => await served.client.createSandbox(options);
  await expect(create({ network: "full" })).rejects.toMatchObject({ code: "policy.invalid" });
  await expect(create({ image: "no.such/image:1" })).rejects.toMatchObject({ code: "image.missing" });
  await expect(create({ user: "nobody-of-this-name" })).rejects.toMatchObject({ code: "usage.invalid" });
  await expect(create({ task: "none" })).rejects.toMatchObject({ code: "serve.unknown" });
  await expect(create({ task: "none", image: "x" })).rejects.toMatchObject({ code: "usage.invalid" });
  await expect(create({ privileged: true })).rejects.toMatchObject({ code: "usage.invalid" });
  expect(await ownContainers()).toEqual(before);
});

it("a client does not reach the sandbox of another one, not even to see that it is there", async () => {
  const others = await served.otherClient.listSandboxes();
  expect(others).toEqual([]);
  expect((await served.client.listSandboxes()).map(({ id }) => id)).toContain(sandbox.id);
  const unknown = { code: "serve.unknown" };
  await expect(served.otherClient.getSandbox(sandbox.id)).rejects.toMatchObject(unknown);
  // The same requests with the other client's token.
  const stolen = async (path: string, method: string, body?: string) =>
    await fetch(`${served.url}/v1/sandboxes/${sandbox.id}${path}`, {
      method,
      headers: { authorization: `Bearer ${served.tokens[1]}` },
      body,
    });
  const tries = [
    stolen("", "DELETE"),
    stolen("/exec", "POST", '{"argv":["true"]}'),
    stolen("/exec-stream", "POST", '{"argv":["true"]}'),
    stolen("/files?path=/etc/passwd", "GET"),
    stolen("/grade", "POST"),
  ];
  expect((await Promise.all(tries)).map(({ status }) => status)).toEqual([404, 404, 404, 404, 404]);
  expect((await sandbox.exec(["true"])).exitCode).toBe(0);
});

it("a sandbox that is deleted ends its commands, and then is unknown", async () => {
  const other = await served.client.createSandbox();
  const running = other.exec(["sleep", "1000"]);
  running.catch(() => undefined);
  await expect.poll(async () => (await other.exec(["pgrep", "sleep"])).exitCode, { timeout: 30_000 }).toBe(0);
  const deleted = other.delete();
  await expect(running).rejects.toMatchObject({ code: "sandbox.gone", reason: "closed" });
  await deleted;
  await expect(other.exec(["true"])).rejects.toMatchObject({ code: "serve.unknown" });
  await other[Symbol.asyncDispose]();
});

it("a sandbox that nobody uses is removed, and one that is used is not", async () => {
  const idle = await served.client.createSandbox({ idleMs: 300 });
  expect((await idle.exec(["sleep", "1"])).exitCode).toBe(0);
  const old = await served.client.createSandbox({ maxLifeMs: 500 });
  const busy = old.exec(["sleep", "1000"]);
  await expect(busy).rejects.toMatchObject({ code: "sandbox.gone" });
  const ids = async () => (await served.client.listSandboxes()).map(({ id }) => id);
  await expect.poll(ids, { timeout: 30_000 }).toEqual([sandbox.id]);
  await expect(idle.exec(["true"])).rejects.toMatchObject({ code: "serve.unknown" });
});

async function isRunning(argument: string): Promise<boolean> {
  return (await sandbox.exec(["pgrep", "-f", `sleep ${argument}`])).exitCode === 0;
}

async function ownContainers(): Promise<string[]> {
  const engine = await testEngine();
  const all = await engine.listContainers([`${LABELS.ownerPid}=${process.pid}`]);
  return all.map(({ id }) => id).toSorted();
}
