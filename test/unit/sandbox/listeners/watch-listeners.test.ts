import { link, mkdir, mkdtemp, realpath, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { BrigError } from "../../../../src/errors.js";
import type { RunnerLink } from "../../../../src/sandbox/channel/runner-link.js";
import { findListeners } from "../../../../src/sandbox/listeners/cover-listeners.js";
import { watchListeners } from "../../../../src/sandbox/listeners/watch-listeners.js";
import { listenOnHost, makeFifo, readFifoOnHost } from "../../../support/host-listeners.js";
import { planFor, type Wanted } from "../plan/plan-fixture.js";

let folder: string;
let repo: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-watch-")));
  repo = join(folder, "repo");
  await mkdir(join(repo, "deep"), { recursive: true });
});
afterEach(async () => await rm(folder, { recursive: true }));

/** What the watch of a sandbox on the repository sees of its link. */
async function watched(wanted: Wanted = {}) {
  const { listeners } = await findListeners(await planFor(repo, wanted), {});
  if (listeners === null) throw new Error("there is nothing to watch");
  let error: BrigError | undefined;
  const played = {
    get isOver() {
      return error !== undefined;
    },
    close(reason: BrigError) {
      error = reason;
    },
  } as RunnerLink;
  watchListeners(played, listeners);
  onTestFinished(() => played.close(new Error("the test is over") as BrigError));
  return {
    link: played,
    ended: async () => await vi.waitUntil(() => error, { timeout: 20_000 }),
    /** What comes of several looks at the files. */
    async remains() {
      await new Promise((resolve) => setTimeout(resolve, 2600));
      expect(error).toBeUndefined();
    },
  };
}

const names = (name: string) => ({
  code: "sandbox.gone",
  reason: "killed",
  message: expect.stringContaining(join(repo, name)),
});

describe.runIf(process.platform === "linux")("a program that begins to listen [needs Linux]", () => {
  it.each(["workspace-write", "read-only"])("ends a sandbox in %s", async (mode) => {
    const { ended } = await watched({ mode });
    await listenOnHost({ directory: folder, address: join(repo, "deep/a.sock") });
    expect(await ended()).toMatchObject(names("deep/a.sock"));
  });

  it("ends it before the next command", async () => {
    const { link: played, ended } = await watched();
    await listenOnHost({ directory: folder, address: join(repo, "a.sock") });
    // A look may just have been taken.
    await new Promise((resolve) => setTimeout(resolve, 60));
    played.beforeCommand?.();
    expect(played.isOver).toBe(true);
    expect(await ended()).toMatchObject(names("a.sock"));
  });

  it("ends it under a relative name, and for datagrams", async () => {
    const { ended } = await watched();
    await listenOnHost({ directory: join(repo, "deep"), address: "a.sock", datagrams: true });
    expect(await ended()).toMatchObject(names("deep/a.sock"));
  });

  it("ends it under a name that the socket gets afterwards", async () => {
    const { ended } = await watched();
    await listenOnHost({ directory: folder, address: "first.sock", renamed: "repo/a.sock" });
    expect(await ended()).toMatchObject(names("a.sock"));
  });

  it.each([
    ["moved", rename],
    ["linked", link],
  ])("ends it when its socket is %s there, long after it began", async (_how, bring) => {
    await listenOnHost({ directory: folder, address: join(folder, "first.sock") });
    const { ended } = await watched();
    await bring(join(folder, "first.sock"), join(repo, "a.sock"));
    expect(await ended()).toMatchObject(names("a.sock"));
  });

  it("ends it where a socket was covered before, whose program has been started again", async () => {
    await listenOnHost({ directory: repo, address: "a.sock" });
    const { ended } = await watched();
    await rm(join(repo, "a.sock"));
    await listenOnHost({ directory: repo, address: "a.sock" });
    expect(await ended()).toMatchObject(names("a.sock"));
  });

  it("elsewhere ends nothing, and neither does what was covered", async () => {
    await listenOnHost({ directory: repo, address: "old.sock" });
    makeFifo(join(repo, "old"));
    readFifoOnHost(join(repo, "old"));
    const { remains } = await watched();
    await listenOnHost({ directory: folder, address: join(folder, "a.sock") });
    await listenOnHost({ directory: folder, address: "b.sock" });
    await listenOnHost({ directory: folder, address: "c.sock", renamed: "d.sock" });
    makeFifo(join(repo, "unused"));
    await remains();
  });
});

describe.runIf(process.platform === "linux")("a FIFO that is made later [needs Linux]", () => {
  it("ends a read-only sandbox once a program of the host waits at it", async () => {
    const { ended } = await watched({ mode: "read-only" });
    makeFifo(join(repo, "deep/fifo"));
    readFifoOnHost(join(repo, "deep/fifo"));
    expect(await ended()).toMatchObject(names("deep/fifo"));
  });

  it("ends any sandbox once a program of the host has it open", async () => {
    const { ended } = await watched();
    makeFifo(join(repo, "fifo"));
    readFifoOnHost(join(repo, "fifo"));
    const { open } = await import("node:fs/promises");
    await using _writer = await open(join(repo, "fifo"), "w");
    expect(await ended()).toMatchObject(names("fifo"));
  });
});
