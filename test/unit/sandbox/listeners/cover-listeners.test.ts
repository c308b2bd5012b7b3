import { link, mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type FoundListeners,
  findListeners,
  NotCovered,
  withCovered,
} from "../../../../src/sandbox/listeners/cover-listeners.js";
import { listenOnHost, makeFifo, stopListening } from "../../../support/host-listeners.js";
import { planFor, type Wanted } from "../plan/plan-fixture.js";

let folder: string;
let repo: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-cover-")));
  repo = join(folder, "repo");
  await mkdir(join(repo, "deep/er"), { recursive: true });
});
afterEach(async () => await rm(folder, { recursive: true }));

async function covered(wanted: Wanted = {}): Promise<string[]> {
  const found = await findListeners(await planFor(repo, wanted), {});
  return found.covered.map(({ path }) => path.slice(folder.length + 1)).toSorted();
}

describe.runIf(process.platform === "linux")("a socket that a program of the host has [needs Linux]", () => {
  it.each(["workspace-write", "read-only", "danger-full-access"])("is covered in %s", async (mode) => {
    await listenOnHost({ directory: folder, address: join(repo, "deep/er/a.sock") });
    expect(await covered({ mode })).toEqual(["repo/deep/er/a.sock"]);
  });

  it("is covered under a relative name", async () => {
    await listenOnHost({ directory: join(repo, "deep"), address: "er/a.sock" });
    expect(await covered()).toEqual(["repo/deep/er/a.sock"]);
  });

  it("is covered under the name that it was given later", async () => {
    await listenOnHost({ directory: repo, address: join(folder, "first.sock"), renamed: "a.sock" });
    expect(await covered()).toEqual(["repo/a.sock"]);
  });

  it("is covered under each of its names", async () => {
    await listenOnHost({ directory: repo, address: join(folder, "first.sock"), linked: "deep/a.sock" });
    await link(join(folder, "first.sock"), join(repo, "b.sock"));
    expect(await covered()).toEqual(["repo/b.sock", "repo/deep/a.sock"]);
  });

  it("is covered if it takes datagrams, whatever it is called", async () => {
    await listenOnHost({ directory: repo, address: "a.sock", datagrams: true });
    await listenOnHost({ directory: folder, address: join(folder, "b.sock"), datagrams: true });
    await link(join(folder, "b.sock"), join(repo, "b.sock"));
    expect(await covered()).toEqual(["repo/a.sock", "repo/b.sock"]);
  });

  it("is covered at a path that no address has room for", async () => {
    const long = join(repo, "x".repeat(60), "y".repeat(60));
    await mkdir(long, { recursive: true });
    await listenOnHost({ directory: long, address: "a.sock", renamed: "b.sock" });
    await listenOnHost({ directory: long, address: "c.sock", renamed: "z".repeat(120) });
    const paths = await covered();
    expect(paths.map((path) => path.split("/").at(-1)?.slice(0, 6))).toEqual(["b.sock", "zzzzzz"]);
  });

  it("is covered in further directories, and not where a sandbox sees nothing of the host", async () => {
    const other = join(folder, "other");
    await mkdir(other);
    await listenOnHost({ directory: other, address: "a.sock" });
    expect(await covered()).toEqual([]);
    expect(await covered({ addDirs: [other] })).toEqual(["other/a.sock"]);
    const none = await findListeners(await planFor(null), {});
    expect([none.covered, none.listeners]).toEqual([[], null]);
  });

  it("is not asked for anything if its name says that it is there", async () => {
    const connections: unknown[] = [];
    const server = createServer((socket) => connections.push(socket));
    await new Promise<void>((resolve) => server.listen(join(repo, "a.sock"), resolve));
    try {
      expect(await covered()).toEqual(["repo/a.sock"]);
      expect(connections).toEqual([]);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("leaves a file behind that stays as it is, so that it can be removed", async () => {
    await stopListening(
      await listenOnHost({ directory: repo, address: "a.sock", renamed: "left-behind.sock" }),
    );
    expect(await covered()).toEqual([]);
  });
});

describe.runIf(process.platform === "linux")("a FIFO [needs Linux]", () => {
  it("is covered, since nobody can say who reads it", async () => {
    makeFifo(join(repo, "deep/fifo"));
    expect(await covered({ mode: "read-only" })).toEqual(["repo/deep/fifo"]);
  });

  it("with a name that no mount can have is refused, and shown in one line", async () => {
    makeFifo(join(repo, "two\nlines"));
    await expect(covered()).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringContaining("two\\nlines"),
    });
  });

  it("among too many is refused", async () => {
    makeFifo(...Array.from({ length: 129 }, (_, number) => join(repo, `deep/${number}`)));
    await expect(covered()).rejects.toMatchObject({ code: "workspace.invalid" });
  });
});

it("without the kernel's table of sockets nothing is searched", async () => {
  makeFifo(join(repo, "fifo"));
  const { covered, listeners } = await findListeners(await planFor(repo), { procDirectory: folder });
  expect([covered, listeners]).toEqual([[], null]);
});

describe("a start beside the search", () => {
  const file = { path: "/repo/a.sock", identity: { dev: "1", ino: "2" } };
  const found: FoundListeners = { covered: [file], listeners: null };
  /** As a sandbox is started: it waits for the search, and refuses to run without a cover that is needed. */
  const starts = async (searching: Promise<FoundListeners>) => {
    const tried: number[] = [];
    const started = withCovered(searching, async (covered) => {
      tried.push(covered.length);
      if ((await searching).covered.length > covered.length) throw new NotCovered();
      return covered;
    });
    return { tried, started };
  };

  it("covers at once what is found by then", async () => {
    const { tried, started } = await starts(Promise.resolve(found));
    expect(await started).toEqual([file]);
    expect(tried).toEqual([1]);
  });

  it("is done once more where more is found later, and once where nothing is", async () => {
    for (const [later, expected] of [
      [found, [0, 1]],
      [{ covered: [], listeners: null }, [0]],
    ] as const) {
      let end: (found: FoundListeners) => void = () => undefined;
      const searching = new Promise<FoundListeners>((resolve) => {
        end = resolve;
      });
      const { tried, started } = await starts(searching);
      await expect.poll(() => tried.length).toBe(1);
      end(later);
      expect(await started).toEqual(later.covered);
      expect(tried).toEqual(expected);
    }
  });

  it("fails with the search, and as it fails itself", async () => {
    const error = new Error("too many");
    await expect((await starts(Promise.reject(error))).started).rejects.toBe(error);
    const own = new Error("no engine");
    await expect(withCovered(Promise.resolve(found), () => Promise.reject(own))).rejects.toBe(own);
  });
});
