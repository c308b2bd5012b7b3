import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { recognisePatchScript } from "../../../../src/tools/command/read-command.js";
import { applyPatchTool } from "../../../../src/tools/patch/apply-patch-tool.js";
import type { PatchFiles } from "../../../../src/tools/patch/patch-files.js";
import { createPatcher } from "../../../../src/tools/patch/patcher.js";
import { runs } from "../../../support/fuzz.js";
import { textPatcher } from "../../../support/text-patcher.js";
import { fileText, mutatedPatch } from "./patches.js";

const noSuchFile = () =>
  Promise.reject(
    new BrigError("no such file", {
      code: "file.not-found",
      cause: Object.assign(new Error(), { code: "ENOENT" }),
    }),
  );

/** Files in memory, all in one directory that is there. */
class MemoryFiles implements PatchFiles {
  readonly texts: Map<string, string>;
  constructor(texts: Record<string, string>) {
    this.texts = new Map(Object.entries(texts));
  }
  read(path: string) {
    const text = this.texts.get(path);
    return text === undefined ? noSuchFile() : Promise.resolve(Buffer.from(text));
  }
  writeEach(files: readonly { path: string; data: string }[]) {
    for (const { path, data } of files) this.texts.set(path, data);
    return Promise.resolve({ written: files.length, failure: null });
  }
  stat(path: string) {
    const ino = BigInt([...this.texts.keys()].indexOf(path));
    return ino < 0n
      ? noSuchFile()
      : Promise.resolve({ type: "file", mode: 0o644, dev: 0n, ino, linkTarget: null });
  }
  mkdir() {
    return Promise.resolve();
  }
  remove(path: string) {
    return this.texts.delete(path) ? Promise.resolve() : noSuchFile();
  }
}

const randomText = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("utf8"));
const bytePatch = randomText.map((text) => `*** Begin Patch\n*** Update File: a.txt\n${text}\n*** End Patch`);

describe("whatever a model sends as a patch", () => {
  it.each([
    ["random text", randomText],
    ["random text as a patch", bytePatch],
    ["a mutated patch", mutatedPatch],
  ])("it is answered, and what does not fit changes nothing: %s", async (_, patches) => {
    await fc.assert(
      fc.asyncProperty(patches, fileText, async (input, text) => {
        const files = new MemoryFiles({ "/w/a.txt": text });
        const { content, success } = await applyPatchTool(
          createPatcher(() => files),
          { cwd: "/w" },
        ).execute({ input });
        expect(success).toBe(content.startsWith("Exit code: 0\n"));
        if (!success) expect([...files.texts]).toEqual([["/w/a.txt", text]]);
      }),
      { numRuns: runs({ short: 300, deep: 10_000 }) },
    );
  });

  it("it is also answered as a diff, and looked at as a script", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(randomText, bytePatch, mutatedPatch), fileText, async (patch, text) => {
        const files = new MemoryFiles({ "/w/a.txt": text });
        const outcome = await textPatcher(() => files).applyAnyPatch(patch, { cwd: "/w" });
        if (outcome.kind !== "applied") expect([...files.texts]).toEqual([["/w/a.txt", text]]);
        recognisePatchScript(`apply_patch <<EOF\n${patch}\nEOF`);
      }),
      { numRuns: runs({ short: 300, deep: 10_000 }) },
    );
  });

  it.each([
    ["a long line of blanks", `${" ".repeat(200_000)}x`],
    ["many blank lines", "\n".repeat(200_000)],
    ["many carriage returns", `${"\r".repeat(200_000)}x`],
    ["many markers", "@@\n".repeat(50_000)],
    ["many headers", "*** Delete File: a.txt\n".repeat(20_000)],
    ["a long heredoc head", `cd ${"a".repeat(100_000)} && ${" ".repeat(100_000)}apply_patch`],
    ["many diff headers", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n".repeat(20_000)],
    ["a diff of many short hunks", `--- a/a.txt\n+++ b/a.txt\n${"@@ -1,9 +1,9 @@\n a\n".repeat(20_000)}`],
    ["many chunks that match late", `*** Update File: a.txt\n${"@@\n-a \n".repeat(10_000)}`],
  ])("it is answered, however long it is: %s", async (_, body) => {
    const files = new MemoryFiles({ "/w/a.txt": "a\n".repeat(20_000) });
    const patcher = textPatcher(() => files);
    for (const text of [body, `*** Begin Patch\n${body}\n*** End Patch`])
      expect(["applied", "refused"]).toContain((await patcher.applyAnyPatch(text, { cwd: "/w" })).kind);
    recognisePatchScript(body);
  });
});
