import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ExecClient, openStdioClient, type StdioClient, uri } from "../support/exec-client.js";
import { openRealExecServer, realCodex, whyNoCodex } from "../support/real-codex.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";

type Request = [method: string, params: object];

const base64 = (text: string) => Buffer.from(text).toString("base64");
const BLOCK = 1024 * 1024;

/** Each request runs in a workspace of its own, which has the same path for both servers. */
const conversations: Record<string, (at: (name: string) => string) => Request[]> = {
  "a file that is read in blocks": (at) => [
    ["fs/open", { handleId: "r", path: at("a"), mode: "read", sandbox: null }],
    ["fs/open", { handleId: "r", path: at("a"), sandbox: null }],
    ["fs/readBlock", { handleId: "r", offset: 1, len: 3 }],
    ["fs/readBlock", { handleId: "r", offset: 0, len: 6 }],
    ["fs/readBlock", { handleId: "r", offset: 6, len: 6 }],
    ["fs/readBlock", { handleId: "r", offset: 4, len: 9 }],
    ["fs/readBlock", { handleId: "r", offset: 0, len: 0 }],
    ["fs/readBlock", { handleId: "r", offset: 0, len: BLOCK + 1 }],
    ["fs/writeBlock", { handleId: "r", offset: 0, chunk: base64("x") }],
    ["fs/readBlock", { handleId: "r", offset: 0, len: 1 }],
    ["fs/close", { handleId: "r" }],
    ["fs/close", { handleId: "r" }],
    ["fs/readBlock", { handleId: "r", offset: 0, len: 1 }],
    ["fs/open", { handleId: "", path: at("a") }],
    ["fs/readBlock", { handleId: "", offset: 0, len: 2 }],
    ["fs/readBlock", { handleId: "", offset: 2 ** 63, len: 2 }],
    ["fs/readBlock", { handleId: "", offset: 0, len: 2 }],
  ],
  "what cannot be opened": (at) => [
    ["fs/open", { handleId: "x".repeat(33), path: at("a") }],
    ["fs/open", { handleId: "d", path: at("sub") }],
    ["fs/open", { handleId: "n", path: at("none") }],
    ["fs/open", { handleId: "z", path: "file:///dev/zero" }],
    ["fs/open", { handleId: "l", path: at("circle") }],
    ["fs/open", { handleId: "w", path: at("none/w"), mode: "replace" }],
    ["fs/readBlock", { handleId: "d", offset: 0, len: 1 }],
  ],
  "a file that is replaced in blocks": (at) => [
    ["fs/open", { handleId: "w", path: at("w"), mode: "replace" }],
    ["fs/readFile", { path: at("w"), sandbox: null }],
    ["fs/writeBlock", { handleId: "w", offset: 6, chunk: base64("world") }],
    ["fs/writeBlock", { handleId: "w", offset: 0, chunk: base64("hello ") }],
    ["fs/readFile", { path: at("w"), sandbox: null }],
    ["fs/writeBlock", { handleId: "w", offset: 0, chunk: "" }],
    ["fs/writeBlock", { handleId: "w", offset: 2 ** 63, chunk: base64("x") }],
    ["fs/writeBlock", { handleId: "w", offset: 20, chunk: base64("gap") }],
    ["fs/readBlock", { handleId: "w", offset: 0, len: 4 }],
    ["fs/writeBlock", { handleId: "w", offset: 0, chunk: base64("x") }],
    ["fs/close", { handleId: "w" }],
    ["fs/readFile", { path: at("w"), sandbox: null }],
    ["fs/open", { handleId: "a", path: at("to-a"), mode: "replace" }],
    ["fs/close", { handleId: "a" }],
    ["fs/readFile", { path: at("a"), sandbox: null }],
  ],
  "too many open files": (at) =>
    Array.from({ length: 130 }, (_, place) => ["fs/open", { handleId: `${place}`, path: at("a") }]),
  "a walk": (at) => {
    const options = { maxDepth: 6, maxDirectories: 2000, maxEntries: 20_000, followDirectorySymlinks: true };
    const walk = (name: string, more: object = {}): Request => [
      "fs/walk",
      { path: at(name), options: { ...options, ...more }, sandbox: null },
    ];
    return [
      walk("."),
      walk(".", { followDirectorySymlinks: false }),
      walk(".", { pruneHiddenDirectories: true }),
      walk("sub", { maxDepth: 0 }),
      walk(".", { maxDirectories: 2 }),
      ...[1, 3, 5, 7, 9, 11].map((maxEntries) => walk(".", { maxEntries })),
      walk(".", { maxEntries: 0 }),
      walk(".", { maxDepth: 65 }),
      walk("a"),
      walk("to-sub"),
      walk("to-sub", { followDirectorySymlinks: false }),
      walk("none"),
      walk("circle"),
    ];
  },
  "the environment": () => [["environment/status", {}]],
};

let directory: TemporaryDirectory;
let real: AsyncDisposable & { client: ExecClient };
let ours: StdioClient;

const title = withReason("the files of Codex's own exec-server and those of brig's", whyNoCodex);
describe.skipIf(realCodex === null)(title, () => {
  beforeAll(async () => {
    directory = await temporaryDirectory();
    real = await openRealExecServer(join(directory.path));
    const workspace = await newWorkspace();
    ours = await openStdioClient(workspace);
    await ours.client.initialize();
    await ours.client.call("environmentConfig/read", { cwd: uri(workspace) });
  });
  afterAll(async () => {
    await Promise.all([real, ours].map(async (one) => await one[Symbol.asyncDispose]()));
    await directory[Symbol.asyncDispose]();
  });

  it.each(Object.entries(conversations))("%s: the same answers", async (_, requests) => {
    const answers = [];
    for (const client of [real.client, ours.client]) {
      const workspace = await newWorkspace();
      const given = [];
      for (const [method, params] of requests((name) => uri(join(workspace, name)))) {
        const { result, error } = await client.ask(method, params);
        given.push({ method, params, result, error });
      }
      for (const { method, params } of given)
        if (method === "fs/open") await client.call("fs/close", { ...params, handleId: shortened(params) });
      answers.push(given);
    }
    expect(answers[1]).toEqual(answers[0]);
  });
});

function shortened(params: object): string {
  return "handleId" in params ? String(params.handleId).slice(0, 32) : "";
}

async function newWorkspace(): Promise<string> {
  const workspace = join(directory.path, "work");
  await mkdir(join(workspace, "sub/deep"), { recursive: true });
  await rm(join(workspace, "w"), { force: true });
  await mkdir(join(workspace, ".hidden/x"), { recursive: true });
  for (const name of ["a", "sub/b", "sub/deep/ü %.md", "Z"])
    await writeFile(join(workspace, name), "hello\n");
  const links = { "to-a": "a", "to-sub": "sub", "sub/up": "..", circle: "circle", nowhere: "none" };
  for (const [name, target] of Object.entries(links)) {
    await rm(join(workspace, name), { force: true });
    await symlink(target, join(workspace, name));
  }
  return workspace;
}
