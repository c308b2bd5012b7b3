import { chmod, link, mkdir, mkdtemp, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { summary } from "../../../../src/tools/patch/apply-patch-tool.js";
import type { PatchFiles } from "../../../../src/tools/patch/patch-files.js";
import { pathsOf } from "../../../../src/tools/patch/patcher.js";
import { hostFiles } from "../../../support/host-files.js";
import { readTree } from "../../../support/host-tree.js";
import { textPatcher } from "../../../support/text-patcher.js";
import { patchOf } from "./patches.js";

/** A directory to patch, and what the patcher did to it. */
const it = test
  // biome-ignore lint/correctness/noEmptyPattern: a fixture names what it needs, and this one needs nothing
  .extend("root", async ({}, { onCleanup }) => {
    const root = await realpath(await mkdtemp(join(tmpdir(), "brig-patch-")));
    onCleanup(() => rm(root, { recursive: true }));
    return root;
  })
  .extend("write", ({ root }) => async (files: Record<string, string | Buffer>) => {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(join(root, name)), { recursive: true });
      await writeFile(join(root, name), content);
    }
  })
  .extend("apply", ({ root }) => async (...lines: string[]) => {
    const outcome = await textPatcher(() => hostFiles).applyPatch(patchOf(...lines), { cwd: root });
    switch (outcome.kind) {
      case "applied":
        return summary(outcome.changes);
      case "empty":
        return "empty";
      default:
        return `${outcome.kind}: ${outcome.reason}`.replaceAll(root, "ROOT");
    }
  })
  .extend("diff", ({ root }) => async (...lines: string[]) => {
    const outcome = await textPatcher(() => hostFiles).applyAnyPatch(lines.join("\n"), { cwd: root });
    return outcome.kind === "applied"
      ? summary(outcome.changes)
      : "reason" in outcome
        ? outcome.reason.replaceAll(root, "ROOT")
        : "";
  });

const success = (...lines: string[]) => ["Success. Updated the following files:", ...lines, ""].join("\n");
const change = (from: string, to: string) => ["@@", `-${from}`, `+${to}`];

describe("an applied patch", () => {
  it("takes absolute paths, and paths out of the directory", async ({ root, write, apply }) => {
    await write({ "sub/f": "a\n" });
    expect(await apply(`*** Update File: ${root}/sub/f`, ...change("a", "b"))).toBe(
      success(`M ${root}/sub/f`),
    );
    expect(await apply("*** Update File: nowhere/../sub/f", ...change("b", "c"))).toBe(
      success("M nowhere/../sub/f"),
    );
    expect(await readTree(root)).toEqual({ "sub/": null, "sub/f": "c\n" });
  });

  it("keeps the mode of a file that it replaces or moves", async ({ root, write, apply }) => {
    await write({ u: "a\n", m: "a\n", o: "a\n" });
    for (const name of ["u", "m", "o"]) await chmod(join(root, name), 0o750);
    await apply(
      "*** Update File: u",
      ...change("a", "b"),
      "*** Update File: m",
      "*** Move to: n",
      ...change("a", "b"),
      "*** Add File: o",
      "+b",
    );
    for (const name of ["u", "n", "o"]) expect((await stat(join(root, name))).mode & 0o777).toBe(0o750);
  });

  it("does not change the other names of a file it replaces", async ({ root, write, apply }) => {
    await write({ f: "a\n" });
    await link(join(root, "f"), join(root, "other"));
    await apply("*** Update File: f", ...change("a", "b"));
    expect(await readTree(root)).toEqual({ f: "b\n", other: "a\n" });
  });

  it("removes one of two names when it moves a file from it to the other", async ({ root, write, apply }) => {
    await write({ f: "a\n" });
    await link(join(root, "f"), join(root, "other"));
    await apply("*** Update File: f", "*** Move to: other", ...change("a", "b"));
    expect(await readTree(root)).toEqual({ other: "b\n" });
  });
});

describe("a patch that does not fit", () => {
  it("because it has a file that is too large is refused", async ({ root, write }) => {
    await write({ f: "" });
    const large: PatchFiles = { ...hostFiles, read: (path) => hostFiles.read(path, { maxBytes: -1 }) };
    const text = patchOf("*** Update File: f", "@@", "+a");
    expect(await textPatcher(() => large).applyPatch(text, { cwd: root })).toMatchObject({
      kind: "refused",
      reason: `Failed to read file to update ${root}/f: file is larger than 67108864 bytes`,
    });
  });
});

describe("a patch that fails half way", () => {
  it("sends no file again and again where every one needs a directory of its own", async ({ root }) => {
    let sent = 0;
    const files: PatchFiles = {
      ...hostFiles,
      writeEach(some, options) {
        sent += some.length;
        return hostFiles.writeEach(some, options);
      },
    };
    const hunks = Array.from({ length: 40 }, (_, index) => [`*** Add File: d${index}/f`, "+x"]);
    const outcome = await textPatcher(() => files).applyPatch(patchOf(...hunks.flat()), { cwd: root });
    expect(outcome.kind).toBe("applied");
    expect(sent).toBeLessThan(40 + 2 * 40);
  });

  it("leaves what it would leave as so many patches, one after the other", async ({ root }) => {
    const name = fc.constantFrom("a", "b", "dir/x", "deep/new/y", "file/below", "taken", "dir", "file");
    await fc.assert(
      fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 8 }), async (names) => {
        const roots = ["together", "apart"].map((kind) =>
          join(root, `${kind}-${names.join("-").replaceAll("/", "_")}`),
        );
        for (const place of roots) {
          await rm(place, { recursive: true, force: true });
          await mkdir(join(place, "taken"), { recursive: true });
          await writeFile(join(place, "file"), "file\n");
        }
        const [together = "", apart = ""] = roots;
        const patcher = textPatcher(() => hostFiles);
        const hunks = names.map((added, index) => [`*** Add File: ${added}`, `+${index}`]);
        const whole = await patcher.applyPatch(patchOf(...hunks.flat()), { cwd: together });
        let done = 0;
        for (const hunk of hunks) {
          if ((await patcher.applyPatch(patchOf(...hunk), { cwd: apart })).kind !== "applied") break;
          done++;
        }
        expect(await readTree(together)).toEqual(await readTree(apart));
        expect(whole.kind).toBe(done === names.length ? "applied" : "failed");
        expect("changes" in whole && whole.changes.map((change) => change.name)).toEqual(
          names.slice(0, done),
        );
      }),
      { numRuns: 60 },
    );
  });

  it("says which directory it could not make", async ({ root }) => {
    const failing: PatchFiles = { ...hostFiles, mkdir: (path) => hostFiles.remove(`${path}/no`, {}) };
    const outcome = await textPatcher(() => failing).applyPatch(patchOf("*** Add File: d/f", "+x"), {
      cwd: root,
    });
    expect(outcome).toMatchObject({
      kind: "failed",
      reason: `Failed to create parent directories for ${root}/d/f: No such file or directory (os error 2)`,
    });
  });

  it("says what it could not remove", async ({ root, write }) => {
    await write({ f: "a\n", g: "a\n" });
    const keeping: PatchFiles = { ...hostFiles, remove: (path) => hostFiles.remove(`${path}/.`, {}) };
    const patcher = textPatcher(() => keeping);
    const outcomes = [
      await patcher.applyPatch(patchOf("*** Delete File: f"), { cwd: root }),
      await patcher.applyPatch(patchOf("*** Update File: g", "*** Move to: h", ...change("a", "b")), {
        cwd: root,
      }),
    ];
    expect(outcomes).toMatchObject([
      {
        kind: "failed",
        reason: `Failed to delete file ${root}/f: Not a directory (os error 20)`,
        changes: [],
      },
      {
        kind: "failed",
        reason: `Failed to remove original ${root}/g: Not a directory (os error 20)`,
        changes: [],
      },
    ]);
    expect(await readTree(root)).toEqual({ f: "a\n", g: "a\n", h: "b\n" });
  });

  it("tells of its start and of what was done", async ({ root, write }) => {
    await write({ "dir/x": "" });
    const told: unknown[] = [];
    await textPatcher(() => hostFiles).applyPatch(
      patchOf("*** Add File: a", "+x", "*** Add File: dir", "+x"),
      {
        cwd: root,
        onStart: (changes) => told.push(changes.map(({ path }) => path)),
        onEnd: (changes, { success }) =>
          told.push(
            changes.map(({ path }) => path),
            success,
          ),
      },
    );
    expect(told).toEqual([[`${root}/a`, `${root}/dir`], [`${root}/a`], false]);
  });
});

describe("a failure that is not about a file", () => {
  it("is thrown", async ({ root }) => {
    const gone = new Error("the sandbox is gone");
    const files: PatchFiles = { ...hostFiles, writeEach: () => Promise.reject(gone) };
    const text = patchOf("*** Add File: a", "+x");
    await expect(textPatcher(() => files).applyPatch(text, { cwd: root })).rejects.toBe(gone);
    await expect(textPatcher(() => Promise.reject(gone)).applyPatch(text, { cwd: root })).rejects.toBe(gone);
  });

  it("as an abort stops before the next file", async ({ root }) => {
    const abort = new AbortController();
    const files: PatchFiles = {
      ...hostFiles,
      async writeEach([first, ...others], options) {
        const done = await hostFiles.writeEach(first === undefined ? [] : [first], options);
        abort.abort(new Error("enough"));
        return others.length === 0 ? done : { ...done, failure: abort.signal.reason };
      },
    };
    const text = patchOf("*** Add File: a", "+x", "*** Add File: b", "+x");
    await expect(
      textPatcher(() => files).applyPatch(text, { cwd: root, signal: abort.signal }),
    ).rejects.toThrow("enough");
    expect(await readTree(root)).toEqual({ a: "x\n" });
  });
});

describe("patches together", () => {
  it("lose no change of a file that several change by different names", async ({ root, write }) => {
    const letters = [..."abcdefghijkl"];
    await write({ "dir/all": letters.map((letter) => `${letter}\n`).join("") });
    await symlink("dir", join(root, "link"));
    await symlink("link/all", join(root, "far"));
    const names = ["dir/all", "link/all", "far", "dir/../link//all", `${root}/link/./all`];
    const patcher = textPatcher(() => hostFiles);
    const outcomes = await Promise.all(
      letters.map((letter, index) =>
        patcher.applyPatch(
          patchOf(
            `*** Update File: ${names[index % names.length]}`,
            "@@",
            `-${letter}`,
            `+${letter.toUpperCase()}`,
          ),
          { cwd: root },
        ),
      ),
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual(letters.map(() => "applied"));
    expect((await readTree(root))["dir/all"]).toBe(
      letters.map((letter) => `${letter.toUpperCase()}\n`).join(""),
    );
  });

  it("lose no change of a file that several change", async ({ root, write }) => {
    const letters = [..."abcdefghijkl"];
    await write({ all: letters.map((letter) => `${letter}\n`).join("") });
    const patcher = textPatcher(() => hostFiles);
    const outcomes = await Promise.all(
      letters.map((letter) =>
        patcher.applyPatch(
          patchOf("*** Update File: all", ...change(letter, letter.toUpperCase()), `*** Add File: ${letter}`),
          { cwd: root },
        ),
      ),
    );
    expect(outcomes.every(({ kind }) => kind === "applied")).toBe(true);
    expect((await readTree(root)).all).toBe(letters.map((letter) => `${letter.toUpperCase()}\n`).join(""));
  });

  it("name every file they touch, moves at both ends, each once", () => {
    const text = patchOf(
      "*** Add File: a",
      "*** Update File: ./a",
      "*** Move to: ../b",
      "-x",
      "*** Delete File: /c",
    );
    expect(pathsOf(text, "/w")).toEqual(["/w/a", "/b", "/c"]);
    expect(pathsOf("no patch", "/w")).toEqual([]);
  });
});

describe("a unified diff as a patch", () => {
  it("updates, adds, deletes and renames", async ({ root, write, diff }) => {
    await write({ u: "a\nb\n", d: "gone\n", "old name": "x\n", e: "" });
    const listed = await diff(
      ...["--- a/u", "+++ b/u", "@@ -1,2 +1,2 @@", " a", "-b", "+c"],
      ...["--- /dev/null", "+++ b/new/n", "@@ -0,0 +1 @@", "+n", "\\ No newline at end of file"],
      ...["--- a/d", "+++ /dev/null", "@@ -1 +0,0 @@", "-gone"],
      ...[
        "diff --git a/old name b/new name",
        "similarity index 100%",
        "rename from old name",
        "rename to new name",
      ],
      ...["diff --git a/e b/e", "deleted file mode 100644", "index e69de29..0"],
      ...[
        "diff --git a/run b/run",
        "new file mode 100755",
        "--- /dev/null",
        "+++ b/run",
        "@@ -0,0 +1 @@",
        "+#!/bin/sh",
      ],
    );
    expect(listed).toBe(success("A new/n", "A run", "M u", "M new name", "D d", "D e"));
    expect(await readTree(root)).toEqual({
      u: "a\nc\n",
      "new/": null,
      "new/n": "n",
      "new name": "x\n",
      run: "#!/bin/sh\n",
    });
    expect((await stat(join(root, "run"))).mode & 0o777).toBe(0o755);
  });

  it.for([
    [
      "adds a file that is there",
      ["--- /dev/null", "+++ b/f", "@@ -0,0 +1 @@", "+x"],
      "ROOT/f exists already",
    ],
    [
      "renames to a file that is there",
      ["diff --git a/f b/g", "rename from f", "rename to g"],
      "ROOT/g exists already",
    ],
    [
      "deletes more than it shows",
      ["--- a/g", "+++ /dev/null", "@@ -1 +0,0 @@", "-b"],
      "ROOT/g has more lines than the patch deletes",
    ],
    [
      "deletes what is not there",
      ["--- a/f", "+++ /dev/null", "@@ -1 +0,0 @@", "-x"],
      "Failed to find expected lines in ROOT/f:\nx",
    ],
    [
      "updates a missing file",
      ["--- a/n", "+++ b/n", "@@ -1 +1 @@", "-x", "+y"],
      "Failed to read file to update ROOT/n: No such file or directory (os error 2)",
    ],
    ["is no diff", ["--- a/n", "+++ b/n"], "invalid diff at line 2: a file without hunks"],
  ] as const)(
    "is refused when it %s, and nothing is changed",
    async ([, lines, reason], { root, write, diff }) => {
      await write({ f: "a\n", g: "b\nc\n" });
      expect(await diff("--- a/f", "+++ b/f", "@@ -1 +1 @@", "-a", "+A", ...lines)).toBe(
        reason.replace("line 2", "line 7"),
      );
      expect(await readTree(root)).toEqual({ f: "a\n", g: "b\nc\n" });
    },
  );

  it("may be in a heredoc for apply_patch, as a patch may", async ({ root, write, diff }) => {
    await write({ "sub/f": "a\n" });
    await diff("cd sub && apply_patch <<'EOF'", "--- a/f", "+++ b/f", "@@ -1 +1 @@", "-a", "+b", "EOF");
    await diff("apply_patch <<'EOF'", patchOf("*** Update File: sub/f", ...change("b", "c")), "EOF");
    await diff("<<'EOF'", patchOf("*** Update File: sub/f", ...change("c", "d")), "EOF");
    await diff(patchOf("*** Update File: sub/f", ...change("d", "e")));
    expect(await readTree(root)).toEqual({ "sub/": null, "sub/f": "e\n" });
  });
});
