import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { openServed, type Served } from "../../support/served.js";

let served: Served;
let sandbox: RemoteSandbox;
let brigHome: string;

beforeAll(async () => {
  brigHome = await mkdtemp(join(tmpdir(), "brig-home-"));
  served = await openServed({ brigHome, limits: { maxPlaces: 5, maxPerClient: 5 } });
  sandbox = await served.client.createSandbox({
    workspaceKind: "overlay",
    workingDirectory: "/workspace",
    env: { GIVEN: "yes" },
  });
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await rm(brigHome, { recursive: true, force: true });
});

const sh = async (where: RemoteSandbox, script: string) => (await where.exec(["sh", "-c", script])).stdout;

describe("a workspace", () => {
  it("is empty, and commands start and write in it", async () => {
    await using other = await served.client.createSandbox({ workspaceKind: "overlay" });
    expect(other.record.workingDirectory).toBe("/workspace");
    expect(await sh(other, "pwd; ls -A; echo a > a; cat a; git init -q . && echo repository")).toBe(
      "/workspace\na\nrepository\n",
    );
    const names = await readdir(served.directory);
    expect(names.length).toBe(2);
    for (const name of names) expect(await readdir(join(served.directory, name))).toEqual([]);
  });

  it("is where the client wants it, for any user and mode", async () => {
    const request = { mode: "danger-full-access", user: "nobody" } as const;
    await using other = await served.client.createSandbox({
      ...request,
      workspaceKind: "overlay",
      workingDirectory: "/home/user/",
    });
    expect(await sh(other, "pwd; id -un; echo a > a && ls")).toBe("/home/user\nnobody\na\n");
  });

  it("cannot hide the system of the image", async () => {
    for (const workingDirectory of ["/", "/usr", "/proc/1", "/.brig", "/a/../etc"])
      await expect(
        served.client.createSandbox({ workspaceKind: "overlay", workingDirectory }),
      ).rejects.toMatchObject({ code: "usage.invalid" });
    expect((await served.client.health()).sandboxes).toBe(1);
  });

  it("leaves no directory on the host", async () => {
    const before = await readdir(served.directory);
    const other = await served.client.createSandbox({ workspaceKind: "overlay" });
    const fork = await other.fork();
    await other.delete();
    expect(await sh(fork, "echo a > a; cat a")).toBe("a\n");
    await fork.delete();
    expect(await readdir(served.directory)).toEqual(before);
  });
});

describe("forks", () => {
  it("have the files and variables of the sandbox, and then files of their own", async () => {
    await sh(sandbox, "echo before > file");
    const forks = await sandbox.fork({ count: 2 });
    expect(forks.map(({ id }) => id)).not.toContain(sandbox.id);
    expect((await served.client.health()).sandboxes).toBe(3);
    const [one, other] = forks as [RemoteSandbox, RemoteSandbox];
    await sh(one, "echo of one > file");
    expect(await sh(one, "pwd; echo $GIVEN; cat file")).toBe("/workspace\nyes\nof one\n");
    expect(await sh(other, "cat file")).toBe("before\n");
    expect(await sh(sandbox, "cat file")).toBe("before\n");
    await Promise.all(forks.map((fork) => fork.delete()));
    expect((await served.client.health()).sandboxes).toBe(1);
  });

  it("are all made, or none is left", async () => {
    await expect(sandbox.fork({ count: 5 })).rejects.toMatchObject({ code: "serve.busy" });
    expect((await served.client.health()).sandboxes).toBe(1);
    expect(await served.client.listSandboxes()).toHaveLength(1);
  });

  it("need a workspace, and a sandbox of the client's own", async () => {
    await using bare = await served.client.createSandbox();
    for (const call of [() => bare.fork(), () => bare.snapshot(), () => bare.diff()])
      await expect(call()).rejects.toMatchObject({ code: "usage.invalid" });
    const path = `${served.url}/v1/sandboxes/${bare.id}/fork`;
    const authorization = `Bearer ${served.tokens[0]}`;
    expect((await fetch(path, { method: "POST", headers: { authorization } })).status).toBe(400);
    const foreign = { authorization: `Bearer ${served.tokens[1]}` };
    expect((await fetch(path, { method: "POST", headers: foreign })).status).toBe(404);
  });
});

describe("snapshots", () => {
  it("are what a sandbox is created with, also after the first one is gone", async () => {
    await using first = await served.client.createSandbox({
      workspaceKind: "overlay",
      workingDirectory: "/work",
    });
    await sh(first, "mkdir sub; echo kept > sub/file; ln -s sub/file link; chmod 755 sub/file");
    const snapshot = await first.snapshot({ name: "ready" });
    expect(snapshot.name).toBe("ready");
    await first.delete();
    await using second = await served.client.createSandbox({ snapshot: snapshot.id });
    expect(await sh(second, "pwd; cat link; stat -c %a sub/file")).toBe("/work\nkept\n755\n");
    expect((await second.diff()).changes.map(({ path }) => path)).toEqual(["link", "sub", "sub/file"]);
    const fork = await second.fork();
    expect(await sh(fork, "cat link")).toBe("kept\n");
    await fork.delete();
    await served.client.deleteSnapshot(snapshot.id);
    await expect(served.client.createSandbox({ snapshot: snapshot.id })).rejects.toMatchObject({
      code: "snapshot.unknown",
    });
  });

  it("are the client's own, and stay when the service ends", async () => {
    const snapshot = await sandbox.snapshot({ name: "mine" });
    expect((await served.client.listSnapshots()).map(({ id, name }) => ({ id, name }))).toEqual([
      { id: snapshot.id, name: "mine" },
    ]);
    const { otherClient } = served;
    expect(await otherClient.listSnapshots()).toEqual([]);
    for (const call of [
      () => otherClient.deleteSnapshot(snapshot.id),
      () => otherClient.createSandbox({ snapshot: snapshot.id }),
      () => served.client.deleteSnapshot("unknown"),
    ])
      await expect(call()).rejects.toMatchObject({ code: "snapshot.unknown" });
    await using next = await openServed({ brigHome });
    expect((await next.client.listSnapshots()).map(({ id }) => id)).toEqual([snapshot.id]);
    await snapshot.remove();
    expect(await next.client.listSnapshots()).toEqual([]);
  });
});

it("the diff has each change, with its patch", async () => {
  await using other = await served.client.createSandbox({ workspaceKind: "overlay" });
  await sh(other, "echo text > text; printf 'a\\377' > $(printf 'odd\\377')");
  const { changes, count } = await other.diff();
  expect(count).toBe(2);
  expect(changes[0]).toMatchObject({ change: "added", before: null, after: { type: "file" } });
  expect(Buffer.from(changes[0]?.pathBytes ?? []).toString("latin1")).toBe("odd\xff");
  expect(changes[1]).toMatchObject({ path: "text", patch: expect.stringContaining("+text") });
  expect((await other.diff({ patches: false })).changes.map(({ patch }) => patch)).toEqual([null, null]);
});
