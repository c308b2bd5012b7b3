import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readInstructionsFile } from "../../../../src/agent/context/instructions-file.js";

const folder = mkdtempSync(join(tmpdir(), "brig-instructions-"));

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const at = (name: string) => join(folder, name);

function makeHuge(path: string): void {
  writeFileSync(path, "");
  truncateSync(path, 20 * 2 ** 30);
}

describe("the instructions file", () => {
  it("is taken word for word", async () => {
    writeFileSync(at("good"), "  Be brief.\r\n\n");
    expect(await readInstructionsFile(at("good"))).toBe("  Be brief.\r\n\n");
  });

  it.each<[string, () => void, string]>([
    ["missing", () => undefined, "does not exist"],
    ["directory", () => mkdirSync(at("directory")), "is a directory"],
    ["fifo", () => execFileSync("mkfifo", [at("fifo")]), "is not a regular file"],
    ["empty", () => writeFileSync(at("empty"), " \n"), "is empty"],
    ["binary", () => writeFileSync(at("binary"), Buffer.of(0x61, 0xff, 0x62)), "is not UTF-8 text"],
    ["huge", () => makeHuge(at("huge")), "is longer than 256 KiB"],
    ["loop", () => execFileSync("ln", ["-s", "loop", at("loop")]), "cannot be read: ELOOP"],
  ])("that is of no use (%s) is refused with the reason", async (name, make, reason) => {
    make();
    await expect(readInstructionsFile(at(name))).rejects.toThrow(
      expect.objectContaining({
        code: "config.invalid",
        message: `the instructions file ${at(name)} ${reason}`,
      }),
    );
  });
});
