import { once } from "node:events";
import { request } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { pack } from "tar-stream";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readTar } from "../../../src/sandbox/docker/calls/tar.js";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { heldDuring } from "../../support/garbage.js";
import { openServed, type Served } from "../../support/served.js";

const MIB = 1024 * 1024;

let served: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  served = await openServed({ http: { headMs: 1000, requestMs: 2000 } });
});

beforeEach(async () => {
  sandbox = await served.client.createSandbox();
});

afterEach(async () => {
  await sandbox.close();
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

const path = (rest: string) => `/v1/sandboxes/${sandbox.id}/${rest}`;
const headers = () => ({ authorization: `Bearer ${served.tokens[0]}` });
const get = async (rest: string, more: Record<string, string> = {}) =>
  await fetch(served.url + path(rest), { headers: { ...headers(), ...more } });

async function* zeros(mebibytes: number): AsyncGenerator<Buffer> {
  for (let count = 0; count < mebibytes; count++) yield Buffer.alloc(MIB);
}

describe("a file", () => {
  it("of any size goes in and out without being in memory", async () => {
    const held = await heldDuring(async () => {
      await sandbox.files.writeStream("/tmp/large", zeros(120));
      let bytes = 0;
      for await (const piece of sandbox.files.readStream("/tmp/large")) bytes += piece.length;
      expect(bytes).toBe(120 * MIB);
    });
    expect(held).toBeLessThan(48 * MIB);
    await expect(sandbox.files.read("/tmp/large")).rejects.toMatchObject({ code: "file.too-large" });
    expect(served.warnings).toEqual([]);
  });

  it("takes longer to arrive than a request may, as long as something comes", async () => {
    const slowly = async function* () {
      for (let count = 0; count < 8; count++) {
        await new Promise((resolve) => setTimeout(resolve, 500));
        yield Buffer.from(`${count}`);
      }
    };
    await sandbox.files.writeStream("/tmp/slow", slowly());
    expect((await sandbox.files.read("/tmp/slow")).toString()).toBe("01234567");
  });

  it("that stops arriving, breaks off or fails leaves what was there", async () => {
    await sandbox.files.write("/tmp/kept", "before");
    const put = () => {
      const sent = request(served.url + path("files?path=/tmp/kept"), { method: "PUT", headers: headers() });
      sent.on("error", () => undefined);
      sent.write("half");
      return sent;
    };
    const silent = put();
    await new Promise((resolve) => silent.once("close", resolve));
    const broken = put();
    await new Promise((resolve) => setTimeout(resolve, 200));
    broken.destroy();
    const fails = async function* () {
      yield Buffer.alloc(2 * MIB);
      throw new Error("no more");
    };
    await expect(sandbox.files.writeStream("/tmp/kept", fails())).rejects.toThrow("no more");
    expect((await sandbox.files.read("/tmp/kept")).toString()).toBe("before");
    // Nothing of the halves is left either.
    await expect
      .poll(async () => (await sandbox.exec(["sh", "-c", "ls -A /tmp | grep brig || true"])).stdout)
      .toBe("");
  });

  it("is read in ranges, with the answers of HTTP", async () => {
    await sandbox.files.write("/tmp/digits", "0123456789");
    const ranged = async (range: string) => {
      const answer = await get("files?path=/tmp/digits", { range });
      return [answer.status, answer.headers.get("content-range"), await answer.text()];
    };
    expect(await ranged("bytes=2-4")).toEqual([206, "bytes 2-4/10", "234"]);
    expect(await ranged("bytes=7-")).toEqual([206, "bytes 7-9/10", "789"]);
    expect(await ranged("bytes=-3")).toEqual([206, "bytes 7-9/10", "789"]);
    expect(await ranged("bytes=8-100")).toEqual([206, "bytes 8-9/10", "89"]);
    expect((await ranged("bytes=10-")).slice(0, 2)).toEqual([416, "bytes */10"]);
    expect(await ranged("bytes=0-1,4-5")).toEqual([200, null, "0123456789"]);
    expect(await ranged("lines=1-2")).toEqual([200, null, "0123456789"]);
    await sandbox.exec(["truncate", "-s", "100G", "/tmp/huge"]);
    const end = await get("files?path=/tmp/huge", { range: "bytes=-4000000" });
    expect([end.status, (await end.arrayBuffer()).byteLength]).toEqual([206, 4_000_000]);
  });

  it("that grows for ever is read up to where it was, and one that shrinks cuts the answer", async () => {
    await sandbox.exec(["sh", "-c", "head -c 3000000 /dev/zero > /tmp/grows"]);
    const growing = await sandbox.spawn([
      "sh",
      "-c",
      "while :; do head -c 100000 /dev/zero >> /tmp/grows; done",
    ]);
    const bytes = (await (await get("files?path=/tmp/grows")).arrayBuffer()).byteLength;
    expect(bytes).toBeGreaterThanOrEqual(3_000_000);
    expect(bytes).toBeLessThan(2 ** 31);
    await growing.kill();
    await sandbox.exec(["sh", "-c", "head -c 200M /dev/zero > /tmp/shrinks"]);
    const reading = sandbox.files.readStream("/tmp/shrinks")[Symbol.asyncIterator]();
    await reading.next();
    await sandbox.exec(["truncate", "-s", "0", "/tmp/shrinks"]);
    const rest = async () => {
      while ((await reading.next()).done !== true);
    };
    await expect(rest()).rejects.toMatchObject({ code: "serve.unreachable" });
  });

  it("is described, moved, and gets its directories", async () => {
    const { files } = sandbox;
    await files.mkdir("/tmp/a/b", { recursive: true, mode: 0o700 });
    await files.write("/tmp/a/b/file", "123", { mode: 0o640 });
    await sandbox.exec(["ln", "-s", "b/file", "/tmp/a/link"]);
    expect(await files.stat("/tmp/a/link")).toMatchObject({ type: "file", sizeBytes: 3, mode: 0o640 });
    const itself = await files.stat("/tmp/a/link", { followSymlinks: false });
    expect(itself).toMatchObject({ type: "symlink", linkTarget: "b/file" });
    await files.rename("/tmp/a/b/file", "/tmp/a/moved");
    expect((await files.read("/tmp/a/moved")).toString()).toBe("123");
    await expect(files.stat("/tmp/a/link")).rejects.toMatchObject({ code: "file.not-found" });
    await expect(files.mkdir("/tmp/a/b")).rejects.toMatchObject({ code: "file.exists" });
    await expect(files.rename("/tmp/none", "/tmp/x")).rejects.toMatchObject({ code: "file.not-found" });
  });
});

describe("a watch", () => {
  it("tells changes from its first line on, also names that are not UTF-8", async () => {
    await using watch = await sandbox.files.watch("/tmp", { recursive: true });
    await sandbox.exec(["bash", "-c", "mkdir /tmp/d; echo > /tmp/d/f; > $'/tmp/\\xff\\n'"]);
    const seen: string[] = [];
    for await (const { type, pathBytes } of watch) {
      seen.push(`${type} ${Buffer.from(pathBytes).toString("latin1")}`);
      if (seen.includes("create \xff\n") && seen.includes("create d/f")) break;
    }
    expect(seen).toContain("create d");
    await expect(sandbox.files.watch("/nowhere")).rejects.toMatchObject({ code: "file.not-found" });
    await expect(sandbox.files.watch("/etc/passwd")).rejects.toMatchObject({ code: "file.not-directory" });
  });

  it("whose reader is too slow is told that changes are missing, and holds little", async () => {
    await sandbox.exec(["mkdir", "/tmp/flood"]);
    const watch = await sandbox.files.watch("/tmp/flood");
    const held = await heldDuring(async () => {
      const flood = "for round in 1 2 3 4 5 6; do seq 20000 | xargs touch; ls | xargs rm; done";
      expect((await sandbox.exec(["sh", "-c", `cd /tmp/flood; ${flood}`])).exitCode).toBe(0);
    });
    expect(held).toBeLessThan(32 * MIB);
    const all = async () => {
      for await (const _ of watch);
    };
    await expect(all()).rejects.toMatchObject({
      code: "file.failed",
      message: expect.stringContaining("missing"),
    });
  });

  it("ends with its reader, its directory or its client, and no program is left", async () => {
    const running = async () =>
      Number((await sandbox.exec(["sh", "-c", "pgrep -fc '[/].brig/watch' || true"])).stdout);
    await sandbox.exec(["mkdir", "/tmp/w"]);
    const watches = await Promise.all(
      Array.from({ length: 32 }, async () => await sandbox.files.watch("/tmp/w")),
    );
    expect(await running()).toBe(32);
    await expect(sandbox.files.watch("/tmp/w")).rejects.toMatchObject({ code: "serve.busy" });
    await watches[0]?.close();
    await expect.poll(running).toBe(31);
    await sandbox.exec(["rmdir", "/tmp/w"]);
    const seen: string[] = [];
    for await (const { type, path } of watches[1] ?? []) seen.push(`${type} ${path}`);
    expect(seen).toEqual(["remove "]);
    await expect.poll(running).toBe(0);
    const aborting = new AbortController();
    await sandbox.files.watch("/tmp", { signal: aborting.signal });
    expect(await running()).toBe(1);
    aborting.abort();
    await expect.poll(running).toBe(0);
  });
});

describe("an archive", () => {
  const archived = (entries: (add: ReturnType<typeof pack>) => void): AsyncIterable<Buffer> => {
    const tar = pack();
    entries(tar);
    tar.finalize();
    return Readable.from(tar) as AsyncIterable<Buffer>;
  };

  it("of a directory goes out, and in again at another place", async () => {
    const script =
      "mkdir -p a/b; echo 1 > a/b/one; chmod 700 a/b/one; ln -s b/one a/link; head -c 3M /dev/urandom > a/large";
    await sandbox.exec(["bash", "-c", script], { cwd: "/tmp" });
    const names: string[] = [];
    for await (const { path, kind } of readTar(Readable.from(sandbox.files.readArchive("/tmp/a"))))
      names.push(`${kind} ${path}`);
    expect(names.toSorted()).toEqual([
      ...["directory a", "directory a/b", "file a/b/one", "file a/large", "symbolic-link a/link"],
    ]);
    await sandbox.files.mkdir("/tmp/copy");
    await sandbox.files.writeArchive("/tmp/copy", sandbox.files.readArchive("/tmp/a"));
    expect((await sandbox.exec(["diff", "-r", "/tmp/a", "/tmp/copy/a"])).output).toBe("");
    expect((await sandbox.exec(["/tmp/copy/a/b/one"])).exitCode).not.toBe(126);
    const missing = get("archive?path=/tmp/missing");
    expect((await missing).status).toBe(404);
  });

  it("is written through no link that is in it or in the directory, and to no place outside", async () => {
    await sandbox.exec([
      "sh",
      "-c",
      "mkdir /tmp/to /tmp/out; ln -s /tmp/out /tmp/to/dir; ln -s /tmp/out/f /tmp/to/f",
    ]);
    const write = async (entries: Parameters<typeof archived>[0]) =>
      await sandbox.files.writeArchive("/tmp/to", archived(entries));
    await expect(write((tar) => tar.entry({ name: "dir/x" }, "x"))).rejects.toMatchObject({
      code: "file.symlink",
    });
    await expect(
      write((tar) => {
        tar.entry({ name: "own", type: "symlink", linkname: "/tmp/out" });
        tar.entry({ name: "own/x" }, "x");
      }),
    ).rejects.toMatchObject({ code: "file.symlink" });
    await write((tar) => tar.entry({ name: "f" }, "replaced"));
    expect((await sandbox.exec(["ls", "-A", "/tmp/out"])).stdout).toBe("");
    expect((await sandbox.exec(["cat", "/tmp/to/f"])).stdout).toBe("replaced");
    for (const name of ["../x", "/etc/x", "a/../../x"])
      await expect(write((tar) => tar.entry({ name }, "x"))).rejects.toMatchObject({ code: "usage.invalid" });
    for (const type of ["link", "character-device", "fifo"] as const)
      await expect(write((tar) => tar.entry({ name: "x", type, linkname: "f" }))).rejects.toMatchObject({
        code: "usage.invalid",
      });
  });

  it("with a head that has no end, or no archive at all, is refused and takes no memory", async () => {
    const endless = async function* () {
      const tar = pack();
      tar.entry({ name: "x", size: 2 ** 33, type: "file" });
      const [head] = (await once(tar, "data")) as [Buffer];
      const bytes = Buffer.from(head);
      // A head with further fields, of 8 GiB.
      bytes.write("x", 156);
      bytes.write("        ", 148);
      const sum = bytes.reduce((all, byte) => all + byte, 0);
      bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
      yield bytes;
      yield* zeros(200);
    };
    const held = await heldDuring(async () => {
      await expect(sandbox.files.writeArchive("/tmp", endless())).rejects.toMatchObject({
        code: "usage.invalid",
      });
    });
    expect(held).toBeLessThan(32 * MIB);
    await expect(
      sandbox.files.writeArchive("/tmp", Readable.from([Buffer.alloc(4096, "no tar")])),
    ).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("of a directory in which links are swapped has nothing from elsewhere", async () => {
    const script =
      "mkdir -p t/a s; echo own > t/a/f; echo secret > s/f; while :; do mv t/a t/b; ln -s ../s t/a; rm t/a; mv t/b t/a; done";
    const swapping = await sandbox.spawn(["sh", "-c", script], { cwd: "/tmp" });
    for (let count = 0; count < 20; count++) {
      const pieces: Buffer[] = [];
      try {
        await pipeline(sandbox.files.readArchive("/tmp/t"), async (source: AsyncIterable<Buffer>) => {
          for await (const piece of source) pieces.push(piece);
        });
      } catch (error) {
        expect((error as { code: string }).code).toMatch(/^(file\..*|serve\.unreachable)$/);
      }
      expect(Buffer.concat(pieces).includes("secret")).toBe(false);
    }
    await swapping.kill();
  });
});
