import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import type {
  ConnectedSandbox,
  PortableAccount,
  PortableSandbox,
  PortableWorkspace,
} from "../../../src/sandbox/portable-sandbox.js";
import { Sandbox } from "../../../src/sandbox/sandbox.js";
import { connectSandbox } from "../../../src/services/lasting/client/connect-sandbox.js";
import { RenewedTls } from "../../../src/services/serve/http/renewed-tls.js";
import { readTlsFiles } from "../../../src/services/serve/http/tls-identity.js";
import { Authority } from "../../support/certificates.js";
import { brig } from "../../support/cli.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../support/sandbox.js";
import { openServed, type Served } from "../../support/served.js";

let served: Served;
let servedWithTls: Served;
let servedOnSocket: Served;
let directory: TemporaryDirectory;
const connected: PortableSandbox[] = [];

beforeAll(async () => {
  directory = await temporaryDirectory();
  await mkdir(join(directory.path, "work"));
  served = await openServed();
  const authority = await Authority.make(directory.path);
  const { cert, key } = await authority.sign("server", { names: "DNS:localhost,IP:127.0.0.1" });
  const tls = new RenewedTls(await readTlsFiles({ cert, key }));
  servedWithTls = await openServed({
    access: { tls },
    clientOptions: { ca: await readFile(authority.cert) },
  });
  servedOnSocket = await openServed({
    access: { listen: { kind: "socket", path: join(directory.path, "socket") } },
  });
});

afterAll(async () => {
  for (const one of connected) await one.close();
  for (const one of [served, servedWithTls, servedOnSocket]) await one[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

const opened: [string, (env: Record<string, string>) => Promise<PortableSandbox>][] = [
  ["this process", (env) => Sandbox.create({ workspaceKind: "none", env })],
  ["a service", (env) => served.client.createSandbox({ env })],
  ["a service with TLS", (env) => servedWithTls.client.createSandbox({ env })],
  ["a service on a socket", (env) => servedOnSocket.client.createSandbox({ env })],
  ["a process of its own that keeps it", openLasting],
];

/** As `Sandbox.connect` gives it. It is ended when it is closed, which otherwise only lets go of it. */
async function openLasting(env: Record<string, string>): Promise<PortableSandbox> {
  return await connectedTo(Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]));
}

async function connectedTo(options: readonly string[]): Promise<ConnectedSandbox> {
  const name = (await runBrig("up", ...options)).trim();
  const environment = readEnvironment({ ...process.env, BRIG_HOME: join(directory.path, "home") });
  const sandbox = await connectSandbox(name, { environment });
  connected.push(sandbox);
  let removing: Promise<string> | undefined;
  const close = async () => {
    removing ??= runBrig("rm", name);
    await removing;
  };
  return { ...sandbox, close, [Symbol.asyncDispose]: close };
}

async function runBrig(...args: string[]): Promise<string> {
  const env = { BRIG_HOME: join(directory.path, "home") };
  const { stdout, stderr } = await brig(args, { cwd: join(directory.path, "work"), env });
  expect(stderr).toBe("");
  return stdout;
}

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

    it("starts a process, gives it input, and gets both outputs and the exit code", async () => {
      const process = await sandbox.spawn(["sh", "-c", "cat; pwd; echo $OWN >&2; exit 3"], {
        ...{ cwd: "/tmp", env: { OWN: "own" }, timeoutMs: 60_000 },
      });
      process.stdin?.write("one ");
      process.stdin?.end("two\n");
      const [stdout, stderr] = await Promise.all([text(process.stdout), text(process.stderr as Readable)]);
      expect([stdout, stderr]).toEqual(["one two\n/tmp\n", "own\n"]);
      expect(await process.exit).toMatchObject({ exitCode: 3, signal: null, timedOut: false });
    });

    it("gets all of much output, and gives much input", async () => {
      const process = await sandbox.spawn(["cat"]);
      const bytes = Buffer.alloc(5_000_000, "brig");
      process.stdin?.end(bytes);
      const pieces: Buffer[] = [];
      for await (const piece of process.stdout) pieces.push(piece as Buffer);
      expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
      expect((await process.exit).exitCode).toBe(0);
    });

    it("starts a process with closed input, or with one output", async () => {
      const closed = await sandbox.spawn(["sh", "-c", "cat; echo end"], { stdin: "closed" });
      expect(closed.stdin).toBe(null);
      expect(await text(closed.stdout)).toBe("end\n");
      const merged = await sandbox.spawn(["sh", "-c", "echo a; echo b >&2; echo c"], { mergeOutput: true });
      expect(merged.stderr).toBe(null);
      expect(await text(merged.stdout)).toBe("a\nb\nc\n");
    });

    it("starts a terminal, changes its size, and types into it", async () => {
      const process = await sandbox.spawn(["bash"], { pty: { rows: 20, cols: 70 }, env: { PS1: "" } });
      expect(process.stderr).toBe(null);
      process.resize({ rows: 33, cols: 99 });
      process.stdin?.write("stty size; exit 5\n");
      expect(await text(process.stdout)).toContain("33 99\r\n");
      expect((await process.exit).exitCode).toBe(5);
      const plain = await sandbox.spawn(["true"]);
      expect(() => plain.resize({ rows: 1, cols: 1 })).toThrow(
        expect.objectContaining({ code: "exec.invalid" }),
      );
      await plain.exit;
    });

    it("signals a process, and ends one with its tree", async () => {
      const trapped = await sandbox.spawn([
        "sh",
        "-c",
        "trap 'exit 6' USR1; echo ready; while :; do sleep 0.1; done",
      ]);
      await once(trapped.stdout, "data");
      await trapped.kill("SIGUSR1");
      expect((await trapped.exit).exitCode).toBe(6);
      const tree = await sandbox.spawn(["sh", "-c", "setsid sleep 7531 & echo ready; wait"]);
      await once(tree.stdout, "data");
      await tree.kill();
      expect(await tree.exit).toMatchObject({ signal: "SIGTERM" });
      expect((await sandbox.exec(["pgrep", "-f", "sleep 7531"])).exitCode).toBe(1);
      await tree.kill();
      await tree.kill("SIGINT");
    });

    it("gets a missing program, a bad directory, a timeout and an abort of a process as each is", async () => {
      const missing = await sandbox.spawn(["no-such-program"]);
      expect((await missing.exit).exitCode).toBe(127);
      const bad = async () => await (await sandbox.spawn(["true"], { cwd: "/nowhere" })).exit;
      await expect(bad()).rejects.toMatchObject({ code: "exec.bad-cwd" });
      const limited = await sandbox.spawn(["sleep", "1000"], { timeoutMs: 200 });
      expect(await limited.exit).toMatchObject({ exitCode: 124, timedOut: true });
      const abort = new AbortController();
      const running = await sandbox.spawn(["sleep", "7532"], { signal: abort.signal });
      abort.abort(new Error("enough"));
      await expect(running.exit).rejects.toThrow("enough");
      expect((await sandbox.exec(["pgrep", "-f", "sleep 7532"])).exitCode).toBe(1);
      await expect(sandbox.spawn(["true"], { signal: abort.signal })).rejects.toThrow("enough");
    });

    it("may write to a process that has ended", async () => {
      const process = await sandbox.spawn(["true"]);
      process.stdin?.write("nobody reads this");
      expect((await process.exit).exitCode).toBe(0);
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

    it("writes and reads files of any size in pieces, and asks what they are", async () => {
      const { files } = sandbox;
      const piece = Buffer.alloc(500_000, "piece");
      const pieces = async function* () {
        for (let count = 0; count < 10; count++) yield piece;
      };
      await files.mkdir("/tmp/streams/deep", { recursive: true, mode: 0o755 });
      await files.writeStream("/tmp/streams/deep/file", pieces(), { mode: 0o600 });
      expect(await files.stat("/tmp/streams/deep/file")).toMatchObject({
        ...{ type: "file", sizeBytes: 5_000_000, mode: 0o600, linkTarget: null },
      });
      let hash = 0;
      let length = 0;
      for await (const bytes of files.readStream("/tmp/streams/deep/file", { offsetBytes: 499_999 })) {
        length += bytes.length;
        hash = (hash + (bytes.at(0) ?? 0)) % 256;
      }
      expect(length).toBe(4_500_001);
      const part: Buffer[] = [];
      for await (const bytes of files.readStream("/tmp/streams/deep/file", {
        offsetBytes: 5,
        lengthBytes: 5,
      }))
        part.push(bytes);
      expect(Buffer.concat(part).toString()).toBe("piece");
      await files.rename("/tmp/streams/deep/file", "/tmp/streams/moved");
      await expect(files.stat("/tmp/streams/deep/file")).rejects.toMatchObject({ code: "file.not-found" });
      const missing = files.readStream("/tmp/streams/missing")[Symbol.asyncIterator]();
      await expect(missing.next()).rejects.toMatchObject({ code: "file.not-found" });
      const failing = async function* () {
        yield piece;
        throw new Error("the source failed");
      };
      await expect(files.writeStream("/tmp/streams/moved", failing())).rejects.toThrow("the source failed");
      expect((await files.stat("/tmp/streams/moved")).sizeBytes).toBe(5_000_000);
    });

    it("watches a directory", async () => {
      const { files } = sandbox;
      await files.mkdir("/tmp/watched/below", { recursive: true });
      await using watch = await files.watch("/tmp/watched", { recursive: true });
      await files.write("/tmp/watched/below/file", "x");
      await files.remove("/tmp/watched/below", { recursive: true });
      const seen: string[] = [];
      for await (const { type, path } of watch) {
        seen.push(`${type} ${path}`);
        if (type === "remove" && path === "below") break;
      }
      expect(seen).toEqual(["create below/file", "write below/file", "remove below/file", "remove below"]);
      await expect(files.watch("/tmp/nowhere")).rejects.toMatchObject({ code: "file.not-found" });
      const aborting = new AbortController();
      const aborted = await files.watch("/tmp", { signal: aborting.signal });
      aborting.abort(new Error("enough"));
      await expect(aborted[Symbol.asyncIterator]().next()).rejects.toThrow("enough");
      // Whoever closes it wants to hear nothing more.
      const closed = await files.watch("/tmp");
      const reading = closed[Symbol.asyncIterator]().next();
      await closed.close();
      expect(await reading).toEqual({ done: true, value: undefined });
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

const workspaces: [string, () => Promise<PortableSandbox & PortableWorkspace>][] = [
  [
    "this process",
    async () => {
      const directory = await temporaryDirectory();
      const sandbox = await Sandbox.create({ workspaceKind: "overlay", workspace: directory.path });
      const close = async () => {
        await sandbox.close();
        await directory[Symbol.asyncDispose]();
      };
      // A proxy, because methods of a class are not its own properties.
      return new Proxy(sandbox, {
        get: (target, name) => {
          if (name === "close") return close;
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
  ],
  ["a service", () => served.client.createSandbox({ workspaceKind: "overlay" })],
  ["a service with TLS", () => servedWithTls.client.createSandbox({ workspaceKind: "overlay" })],
  ["a service on a socket", () => servedOnSocket.client.createSandbox({ workspaceKind: "overlay" })],
  ["a process of its own that keeps it", () => connectedTo(["--workspace", "overlay"])],
];

describe.each(workspaces)("the copy-on-write workspace of a sandbox of %s", (_, open) => {
  let sandbox: PortableSandbox & PortableWorkspace;

  beforeAll(async () => {
    sandbox = await open();
  });

  afterAll(async () => {
    await sandbox.close();
  });

  const run = async (script: string) => {
    const { exitCode, stdout, stderr } = await sandbox.exec(["sh", "-ec", script]);
    expect([exitCode, stderr]).toEqual([0, ""]);
    return stdout;
  };

  it("has restore points, which say what has changed", async () => {
    expect([await sandbox.restorePoint(), await sandbox.restorePoints()]).toEqual([null, []]);
    await run("echo one > a; echo one > b");
    const first = await sandbox.restorePoint();
    expect(first).toMatchObject({
      ...{ number: 1, count: 2 },
      changes: [
        { path: "a", change: "added" },
        { path: "b", change: "added" },
      ],
    });
    expect(await sandbox.restorePoint()).toBeNull();
    await run("echo two > a; rm b");
    const second = await sandbox.restorePoint();
    expect(second).toMatchObject({ number: 2, count: 2 });
    expect(await sandbox.restorePoints()).toEqual([first, second]);
  });

  it("goes back to a point, to the start, and to what was there before", async () => {
    expect(await sandbox.restore(1)).toMatchObject({ number: 3, count: 2 });
    expect(await run("cat a b")).toBe("one\none\n");
    expect(await sandbox.restore(1)).toBeNull();
    expect(await sandbox.restore(0)).toMatchObject({ number: 4 });
    expect(await run("ls")).toBe("");
    expect(await sandbox.restore(2)).toMatchObject({ number: 5 });
    expect(await run("ls; cat a")).toBe("a\ntwo\n");
    await run("touch c");
    expect(await sandbox.undo()).toMatchObject({
      ...{ undone: { number: 6, changes: [{ path: "c", change: "added" }] }, restores: 2 },
      point: { number: 7, changes: [{ path: "c", change: "deleted" }] },
    });
    expect(await run("ls")).toBe("a\n");
    await expect(sandbox.restore(99)).rejects.toMatchObject({ code: "snapshot.unknown" });
    expect(await sandbox.undo()).toMatchObject({ undone: { number: 2 }, restores: 1 });
    expect(await sandbox.undo()).toMatchObject({ undone: { number: 1 }, restores: 0 });
    expect(await sandbox.undo()).toBeNull();
  });
});

const accounts: [string, () => Promise<PortableSandbox & PortableWorkspace & PortableAccount>][] = [
  ["a service", () => served.client.createSandbox()],
  ["a service with TLS", () => servedWithTls.client.createSandbox()],
  ["a service on a socket", () => servedOnSocket.client.createSandbox()],
  ["a process of its own that keeps it", () => connectedTo([])],
];

describe.each(accounts)("a sandbox of %s", (_, open) => {
  it("has a proof, a receipt when it was removed, and no restore points without a copy-on-write workspace", async () => {
    const sandbox = await open();
    const { policy, differences, summary } = await sandbox.proof();
    expect([policy, differences, summary.noNewPrivileges]).toEqual(["workspace-write", [], "true"]);
    await expect(sandbox.receipt()).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(sandbox.restorePoint()).rejects.toMatchObject({ code: "usage.invalid" });
    await sandbox.close();
    expect(await sandbox.receipt()).toEqual({ findings: [], omitted: 0, incomplete: null });
  });
});
