import { FileNotFoundError, type FilesystemEvent, InvalidArgumentError, Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openServed, type Served } from "../../support/served.js";

let served: Served;
let sandbox: Sandbox;

beforeAll(async () => {
  served = await openServed();
  sandbox = await Sandbox.create({ ...served.e2b[0], validateApiKey: false });
});

afterAll(async () => {
  await sandbox.kill();
  await served[Symbol.asyncDispose]();
  expect(served.warnings).toEqual([]);
});

const bytesOf = (length: number) =>
  Uint8Array.from({ length }, (_, index) => (index * 7 + (index >> 8)) % 256);

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

describe("a file", () => {
  it("is written and read as text, bytes, a blob and a stream", async () => {
    const { files } = sandbox;
    expect(await files.write("text.txt", "grüße\n")).toEqual({
      ...{ name: "text.txt", path: "/home/user/text.txt", type: "file" },
      metadata: undefined,
    });
    expect(await files.read("/home/user/text.txt")).toBe("grüße\n");
    const bytes = bytesOf(3_000_000);
    await files.write("bytes", bytes.buffer as ArrayBuffer);
    expect(Buffer.from(await files.read("bytes", { format: "bytes" })).equals(bytes)).toBe(true);
    const blob = await files.read("bytes", { format: "blob" });
    expect(blob.size).toBe(bytes.length);
    const pieces: Uint8Array[] = [];
    for await (const piece of await files.read("bytes", { format: "stream" }))
      pieces.push(piece as Uint8Array);
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
    await files.write("empty", "");
    expect(await files.read("empty")).toBe("");
    expect((await files.read("/proc/self/status")).length).toBeGreaterThan(100);
  });

  it("is written as a stream, and compressed in both directions", async () => {
    const { files } = sandbox;
    const bytes = bytesOf(5_000_000);
    const stream = ReadableStream.from(piecesOf(bytes));
    await files.write("streamed", stream as never);
    expect(Buffer.from(await files.read("streamed", { format: "bytes" })).equals(bytes)).toBe(true);
    await files.write("zipped", "a".repeat(1_000_000), { gzip: true });
    expect((await sandbox.commands.run("wc -c < zipped")).stdout.trim()).toBe("1000000");
    expect(await files.read("zipped", { gzip: true })).toBe("a".repeat(1_000_000));
  });

  it("is written with many others, and with the directories above it", async () => {
    const entries = Array.from({ length: 20 }, (_, index) => ({
      path: `many/${index}/ä "x".txt`,
      data: `${index}`,
    }));
    const written = await sandbox.files.write(entries);
    expect(written.map(({ path }) => path)).toEqual(entries.map(({ path }) => `/home/user/${path}`));
    expect(await sandbox.files.read('many/7/ä "x".txt')).toBe("7");
  });

  it("is replaced, keeps its mode, and is reached by URLs that are signed", async () => {
    await sandbox.files.write("script", "echo 1");
    await sandbox.commands.run("chmod 755 script");
    await sandbox.files.write("script", "echo 2");
    expect((await sandbox.commands.run("./script")).stdout).toBe("2\n");
    const url = await sandbox.downloadUrl("script", { useSignatureExpiration: 60 });
    expect(await (await fetch(url)).text()).toBe("echo 2");
    const form = new FormData();
    form.append("file", new Blob(["uploaded"]), "ignored");
    const sent = await fetch(await sandbox.uploadUrl("up.txt"), { method: "POST", body: form });
    expect(sent.status).toBe(200);
    expect(await sandbox.files.read("up.txt")).toBe("uploaded");
    expect((await fetch(url.replace("script", "up.txt"))).status).toBe(401);
  });

  it("that is missing, or is none, is an error as with E2B", async () => {
    const { files } = sandbox;
    await expect(files.read("missing")).rejects.toBeInstanceOf(FileNotFoundError);
    await expect(files.read("/tmp")).rejects.toBeInstanceOf(InvalidArgumentError);
    await expect(files.write("/tmp", "x")).rejects.toBeInstanceOf(InvalidArgumentError);
    await expect(files.read("x", { user: "nobody" })).rejects.toThrow(/user "nobody"/);
    await expect(files.write("x", "y", { metadata: { a: "b" } })).rejects.toThrow(/metadata/);
  });
});

describe("directories", () => {
  it("are made once, listed with a depth, and removed", async () => {
    const { files } = sandbox;
    expect(await files.makeDir("tree/a/b")).toBe(true);
    expect(await files.makeDir("tree/a/b")).toBe(false);
    await files.write("tree/a/b/file", "12345");
    await sandbox.commands.run("cd tree; ln -s a/b link; ln -s /nowhere broken; mkfifo fifo");
    const names = async (depth?: number) =>
      (await files.list("tree", { depth })).map(({ path, type }) => `${path.slice(16)} ${type}`);
    expect(await names()).toEqual(["a dir", "broken symlink", "link dir"]);
    expect(await names(3)).toEqual([...["a dir", "a/b dir", "a/b/file file", "broken symlink", "link dir"]]);
    await files.remove("tree");
    expect(await files.exists("tree")).toBe(false);
    await files.remove("tree");
    await expect(files.list("tree")).rejects.toBeInstanceOf(FileNotFoundError);
    await files.write("plain", "x");
    await expect(files.list("plain")).rejects.toBeInstanceOf(InvalidArgumentError);
    await expect(files.makeDir("plain")).rejects.toBeInstanceOf(InvalidArgumentError);
  });

  it("and files are described, and moved", async () => {
    const { files } = sandbox;
    await files.write("described", "12345");
    await sandbox.commands.run(
      "chmod 640 described; ln -s described to-it; touch -d '2020-02-03 04:05:06Z' described",
    );
    expect(await files.getInfo("described")).toEqual({
      ...{ name: "described", path: "/home/user/described", type: "file", size: 5, mode: 0o640 },
      ...{ permissions: "-rw-r-----", owner: "user", group: "user", symlinkTarget: undefined },
      ...{ modifiedTime: new Date("2020-02-03T04:05:06Z"), metadata: undefined },
    });
    expect(await files.getInfo("to-it")).toMatchObject({
      ...{ type: "file", symlinkTarget: "/home/user/described", permissions: "Lrwxrwxrwx" },
    });
    const moved = await files.rename("described", "elsewhere/moved");
    expect(moved).toMatchObject({ name: "moved", path: "/home/user/elsewhere/moved", size: 5 });
    expect(await files.exists("described")).toBe(false);
    await expect(files.rename("described", "x")).rejects.toBeInstanceOf(FileNotFoundError);
  });
});

describe("a watch", () => {
  async function watched(path: string, options?: { recursive?: boolean; includeEntry?: boolean }) {
    const events: FilesystemEvent[] = [];
    let exit: { error: Error | undefined } | undefined;
    const handle = await sandbox.files.watchDir(path, (event) => void events.push(event), {
      ...options,
      timeoutMs: 0,
      onExit: (error) => {
        exit = { error };
      },
    });
    const has = async (type: string, name: string) =>
      await expect
        .poll(() => events.map((event) => `${event.type} ${event.name}`))
        .toContain(`${type} ${name}`);
    return { events, has, handle, exit: () => exit };
  }

  it("tells what is created, written, changed in mode, renamed and removed, from the moment that it has begun", async () => {
    await sandbox.files.makeDir("watched");
    const { has, handle, events } = await watched("watched");
    await sandbox.files.write("watched/a", "1");
    await has("create", "a");
    await has("write", "a");
    await sandbox.commands.run("cd watched; echo 2 >> a; chmod 700 a; mv a b; rm b");
    for (const [type, name] of [
      ["chmod", "a"],
      ["rename", "a"],
      ["create", "b"],
      ["remove", "b"],
    ] as const)
      await has(type, name);
    // Nothing is said of the file with which the content came.
    expect(events.filter(({ name }) => !["a", "b"].includes(name))).toEqual([]);
    await handle.stop();
  });

  it("of a tree follows directories that are made and moved, and does not tell of what is moved away", async () => {
    await sandbox.files.makeDir("tree2/old/deep");
    const { has, events, handle } = await watched("tree2", { recursive: true });
    await sandbox.commands.run("cd tree2; mkdir -p n/e/w; echo 1 > n/e/w/file; echo 1 > old/deep/file");
    await has("write", "n/e/w/file");
    await has("create", "old/deep/file");
    await sandbox.commands.run("cd tree2; mv n m; echo 2 > m/e/w/later");
    await has("create", "m/e/w/later");
    await sandbox.commands.run("cd tree2; mv m ../away");
    await has("rename", "m");
    // Something else after it, so that it is known to have been noticed.
    await sandbox.commands.run("sleep 0.2; cd tree2; echo > ../away/e/unseen; echo > old/seen");
    await has("create", "old/seen");
    expect(events.filter(({ name }) => name.endsWith("unseen"))).toEqual([]);
    await handle.stop();
  });

  it("describes entries if it is to", async () => {
    await sandbox.files.makeDir("entries");
    const { events, has, handle } = await watched("entries", { includeEntry: true });
    await sandbox.files.write("entries/file", "123");
    await has("write", "file");
    expect(events.find(({ type }) => type === "create")?.entry).toMatchObject({
      ...{ path: "/home/user/entries/file", size: 3, type: "file" },
    });
    await handle.stop();
  });

  it("ends with its directory, is refused for what is none, and leaves no program behind", async () => {
    await sandbox.files.makeDir("short");
    const { exit } = await watched("short");
    await sandbox.files.remove("short");
    await expect.poll(exit).toEqual({ error: undefined });
    await expect(watched("short")).rejects.toBeInstanceOf(FileNotFoundError);
    await sandbox.files.write("no-directory", "");
    await expect(watched("no-directory")).rejects.toBeInstanceOf(InvalidArgumentError);
    await expect
      .poll(async () => (await sandbox.commands.run("pgrep -fc '[/].brig/watch' || true")).stdout)
      .toBe("0\n");
  });

  it("tells its client when something in the sandbox has ended it", async () => {
    await sandbox.files.makeDir("ended");
    const { exit } = await watched("ended");
    await sandbox.commands.run("pkill -9 -f '[/].brig/watch'");
    await expect
      .poll(exit)
      .toMatchObject({ error: { message: expect.stringContaining("ended by something") } });
  });

  it("is asked for its events by clients that do not stream", async () => {
    const call = async (method: string, body: object) => {
      const { envdAccessToken } = sandbox as unknown as { envdAccessToken: string };
      const answer = await fetch(`${served.url}/filesystem.Filesystem/${method}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "e2b-sandbox-id": sandbox.sandboxId,
          "e2b-sandbox-port": "49983",
          "x-access-token": envdAccessToken,
        },
        body: JSON.stringify(body),
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    await sandbox.files.makeDir("polled");
    const { watcherId } = (await call("CreateWatcher", { path: "polled" })).body;
    await sandbox.files.write("polled/file", "1");
    const events: unknown[] = [];
    await expect
      .poll(async () => {
        events.push(...((await call("GetWatcherEvents", { watcherId })).body.events as unknown[]));
        return events;
      })
      .toContainEqual({ name: "file", type: "EVENT_TYPE_WRITE" });
    expect((await call("GetWatcherEvents", { watcherId })).body).toEqual({ events: [] });
    expect((await call("RemoveWatcher", { watcherId })).status).toBe(200);
    expect((await call("GetWatcherEvents", { watcherId })).body).toMatchObject({ code: "not_found" });
  });
});
