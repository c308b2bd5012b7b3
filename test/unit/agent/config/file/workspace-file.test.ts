import { execFileSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { open, readdir } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  readWorkspaceFile,
  WORKSPACE_FILE_MAX_BYTES,
} from "../../../../../src/agent/config/workspace-file.js";

let root = "";
let workspace = "";
let file = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "brig-workspace-"));
  workspace = join(root, "w");
  mkdirSync(join(workspace, ".brig"), { recursive: true });
  file = join(workspace, ".brig/config.toml");
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

const canMakeDevices = (() => {
  const device = join(tmpdir(), `brig-device-${process.pid}`);
  try {
    execFileSync("mknod", [device, "c", "1", "3"], { stdio: "ignore" });
    unlinkSync(device);
    return true;
  } catch {
    return false;
  }
})();

const hasProc = existsSync("/proc/self/fd");
const ways = [true, false].filter((usesProc) => hasProc || !usesProc);

describe.each(ways.map((usesProc) => ({ usesProc })))("readWorkspaceFile, with %j", (options) => {
  const read = (path = file) => readWorkspaceFile(path, options);

  it("reads a plain file in a plain directory", async () => {
    writeFileSync(file, 'model = "ä"');
    expect(await read()).toEqual({ kind: "text", text: 'model = "ä"' });
  });

  it.each([
    ["no directory", () => rmSync(join(workspace, ".brig"), { recursive: true })],
    ["no file", () => undefined],
    [
      "a file in place of the directory",
      () => {
        rmSync(join(workspace, ".brig"), { recursive: true });
        writeFileSync(join(workspace, ".brig"), "");
      },
    ],
  ])("takes %s for no configuration", async (_name, make) => {
    make();
    expect(await read()).toEqual({ kind: "absent" });
  });

  it.each([
    ["a link to a file", () => symlinkSync(join(root, "secret.toml"), file), "it is a symbolic link"],
    ["a link to nothing", () => symlinkSync(join(root, "nothing"), file), "it is a symbolic link"],
    ["a link to itself", () => symlinkSync("config.toml", file), "it is a symbolic link"],
    ["a link to a device", () => symlinkSync("/dev/zero", file), "it is a symbolic link"],
    ["a FIFO", () => execFileSync("mkfifo", [file]), "it is not a regular file"],
    ["a directory", () => mkdirSync(file), "it is not a regular file"],
    [
      "in a directory that is a link",
      () => {
        rmSync(join(workspace, ".brig"), { recursive: true });
        symlinkSync(root, join(workspace, ".brig"));
        writeFileSync(join(root, "config.toml"), 'model = "secret"');
      },
      ".brig is a symbolic link",
    ],
  ])("refuses what is %s, without waiting", async (_name, make, reason) => {
    writeFileSync(join(root, "secret.toml"), 'model = "secret"');
    make();
    expect(await read()).toEqual({
      kind: "refused",
      reason: expect.stringContaining(reason),
    });
  });

  it("refuses a socket", async () => {
    const server = createServer().listen(file);
    await new Promise((resolve) => server.once("listening", resolve));
    expect(await read()).toMatchObject({ kind: "refused" });
    await new Promise((resolve) => server.close(resolve));
  });

  it.runIf(canMakeDevices)("refuses a device [needs root, to make a device]", async () => {
    execFileSync("mknod", [file, "c", "1", "3"]);
    expect(await read()).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("not a regular file"),
    });
  });

  it("takes a file of 64 KiB and none that is larger, however large it is", async () => {
    writeFileSync(file, "#".repeat(WORKSPACE_FILE_MAX_BYTES));
    expect(await read()).toMatchObject({ kind: "text" });
    const handle = await open(file, "r+");
    await handle.truncate(2 ** 40);
    await handle.close();
    await expect(read()).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("is larger than 65536 bytes"),
      hint: expect.stringContaining("untrusted"),
    });
  });

  it("does not take bytes that are no text", async () => {
    writeFileSync(file, Buffer.from([0x61, 0xc3, 0x28]));
    await expect(read()).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("is not UTF-8 text"),
    });
  });

  it.runIf(hasProc)("leaves no descriptor open [needs the files of /proc]", async () => {
    const before = (await readdir("/proc/self/fd")).length;
    writeFileSync(file, "a = 1");
    linkSync(file, join(workspace, ".brig/other.toml"));
    for (let call = 0; call < 20; call += 1) {
      await read();
      await read(join(workspace, ".codex/config.toml"));
    }
    expect((await readdir("/proc/self/fd")).length).toBeLessThanOrEqual(before + 2);
  });
});

describe("readWorkspaceFile", () => {
  it.runIf(hasProc)(
    "never reads anything else while an agent exchanges file and directory for links [needs the files of /proc]",
    async () => {
      mkdirSync(join(root, "outside"));
      writeFileSync(join(root, "outside/config.toml"), "outside");
      writeFileSync(file, "inside");
      let isDone = false;
      const exchange = (async () => {
        for (let round = 0; !isDone; round += 1) {
          const folder = join(workspace, ".brig");
          if (round % 2 === 0) {
            renameSync(folder, join(workspace, "aside"));
            symlinkSync(join(root, "outside"), folder);
            await new Promise((resolve) => setImmediate(resolve));
            unlinkSync(folder);
            renameSync(join(workspace, "aside"), folder);
          } else {
            renameSync(file, `${file}.aside`);
            symlinkSync(join(root, "outside/config.toml"), file);
            await new Promise((resolve) => setImmediate(resolve));
            unlinkSync(file);
            renameSync(`${file}.aside`, file);
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      const seen = new Set<string>();
      for (let call = 0; call < 400; call += 1) {
        const read = await readWorkspaceFile(file).catch((error: Error) => ({
          kind: "failed",
          text: error.message,
        }));
        seen.add(read.kind);
        if (read.kind === "text") expect(read).toEqual({ kind: "text", text: "inside" });
      }
      isDone = true;
      await exchange;
      expect(seen).toContain("text");
    },
  );
});
