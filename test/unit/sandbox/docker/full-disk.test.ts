import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { blameFullDisk } from "../../../../src/sandbox/docker/disk/full-disk.js";
import { engineFailure, RefusedRequest } from "../../../../src/sandbox/docker/engine-failure.js";
import { fakeWaits } from "../../../support/fake-waits.js";
import { SmallDisk, whyNoSmallDisk } from "../../../support/small-disk.js";

const MEBIBYTE = 1024 ** 2;
const memoryBytes = 1024 * Number(/^MemTotal: +(\d+)/m.exec(readFileSync("/proc/meminfo", "latin1"))?.[1]);
const endpoint = "unix:///run/engine.sock";

const at = (dockerRootDir: string, more: object = {}) => ({
  endpoint,
  info: async () => ({ kernel: release(), memoryBytes, dockerRootDir, ...more }),
});
const refused = (words: string, status = 500) =>
  engineFailure(new RefusedRequest(status, JSON.stringify({ message: words })), {
    doing: "create a container",
    address: endpoint,
  });
const words = "write /x/y: no space left on device";

describe("an engine's error about a full disk", () => {
  it("names the disk without a number where the engine is elsewhere, or does not say where", async () => {
    const unknown = { owner: "engine", path: null, freeBytes: null, freeFiles: null };
    const elsewhere = { ...at(tmpdir()), endpoint: "tcp://engine.test:2375" };
    const inMachine = at(tmpdir(), { kernel: "5.0.0-another" });
    const silent = { endpoint, info: () => Promise.reject(new Error("no answer")) };
    for (const engine of [elsewhere, inMachine, silent, at(""), at("/proc/nonexistent/brig")]) {
      const found = await blameFullDisk(refused(words), engine);
      expect(found).toMatchObject({ code: "engine.failed", errno: "ENOSPC", disk: unknown });
      expect(found.message).toMatch(/\(HTTP 500\)\nthe disk of the container engine is full$/);
    }
  });

  it("does not wait for an engine that says nothing", async () => {
    using _clock = fakeWaits();
    const frozen = { endpoint, info: () => new Promise<never>(() => undefined) };
    const blaming = blameFullDisk(refused(words), frozen);
    await vi.advanceTimersByTimeAsync(2000);
    expect((await blaming).disk).toMatchObject({ path: null });
  });

  it("says what is free where there is room again", async () => {
    const found = await blameFullDisk(refused(words), at(tmpdir()));
    expect(found.message).toContain("the disk of the container engine had no room for that: ");
    expect(found.disk).toMatchObject({ path: tmpdir(), freeBytes: expect.any(Number) });
  });

  it("keeps the engine's own error as its cause", async () => {
    const error = refused(words);
    expect((await blameFullDisk(error, at(tmpdir()))).cause).toBe(error.cause);
  });

  it.each([
    "mkdir /sys/fs/cgroup/memory/docker/1: no space left on device",
    "inotify_add_watch: no space left on device",
  ])("is not one if the kernel has no room for something else: %s", async (other) => {
    const error = refused(other);
    expect(await blameFullDisk(error, at(tmpdir()))).toBe(error);
  });

  it("is left alone if it names a disk already", async () => {
    const disk = { owner: "engine", path: "/x", freeBytes: 1, freeFiles: 1 } as const;
    const error = new BrigError("full", { code: "engine.failed", errno: "ENOSPC", disk });
    expect(await blameFullDisk(error, at(tmpdir()))).toBe(error);
  });
});

describe("an engine's error about something else", () => {
  const other = () => refused("something went wrong");

  it("is left alone where its disk has room, or cannot be seen", async () => {
    for (const engine of [at(tmpdir()), at(""), { ...at(tmpdir()), endpoint: "tcp://engine.test:2375" }]) {
      const error = other();
      expect(await blameFullDisk(error, engine)).toBe(error);
    }
  });

  describe.skipIf(whyNoSmallDisk !== null)("on a small disk [needs root, to mount a small disk]", () => {
    let disk: SmallDisk;
    beforeEach(() => {
      disk = SmallDisk.mount(20);
    });
    afterEach(async () => {
      await disk[Symbol.asyncDispose]();
    });

    it("names the disk if that is full, or almost full", async () => {
      const blamed = async () => await blameFullDisk(other(), at(disk.path));
      expect((await blamed()).disk).toBeUndefined();
      await disk.fill({ leavesBytes: 3 * MEBIBYTE });
      const almost = await blamed();
      expect(almost.message).toContain(`almost full: 3.0 MiB are free in ${disk.path}`);
      expect(almost).toMatchObject({ errno: undefined, disk: { path: disk.path, freeBytes: 3 * MEBIBYTE } });
      await disk.fill();
      expect((await blamed()).message).toContain(`engine is full: 0 B are free in ${disk.path}`);
    });

    it("names a disk that can have no more files", async () => {
      // The root directory is one of them.
      execFileSync("mount", ["-o", "remount,nr_inodes=1", disk.path]);
      const found = await blameFullDisk(other(), at(disk.path));
      expect(found.message).toContain(`is full: there can be no more files in ${disk.path}`);
      expect(found.disk).toMatchObject({ freeFiles: 0 });
    });
  });
});
