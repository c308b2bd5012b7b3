import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SessionApprovals } from "../../../../src/agent/approvals/approvals.js";
import { BrigError } from "../../../../src/errors.js";
import { patchOutput } from "../../../../src/tools/patch/apply-patch-tool.js";
import type { PatchFiles } from "../../../../src/tools/patch/patch-files.js";
import { createPatcher } from "../../../../src/tools/patch/patcher.js";
import { applyReviewedPatch } from "../../../../src/tools/patch/reviewed-patch.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import { ScriptedApprover } from "../../../support/approvals.js";
import { runs } from "../../../support/fuzz.js";
import { hostFiles } from "../../../support/host-files.js";
import { readTree } from "../../../support/host-tree.js";
import { patchOf } from "./patches.js";

const isLockedPath = (path: string) => /\/(?:locked|notes|note)(?:\/|$)/.test(path);

/** As the host's files, but that nothing below a `locked` directory, or a link to it, can be changed. */
const lockedFiles: PatchFiles = {
  ...hostFiles,
  async writeEach(files, options) {
    const locked = files.findIndex(({ path }) => isLockedPath(path));
    const open = locked === -1 ? files : files.slice(0, locked);
    const done = await hostFiles.writeEach(open, options);
    const path = files[locked]?.path;
    return done.failure !== null || path === undefined ? done : { ...done, failure: readOnly(path) };
  },
  mkdir: (path, options) =>
    isLockedPath(path) ? Promise.reject(readOnly(path)) : hostFiles.mkdir(path, options),
  remove: (path, options) =>
    isLockedPath(path) ? Promise.reject(readOnly(path)) : hostFiles.remove(path, options),
};

function readOnly(path: string): BrigError {
  return new BrigError(`${path} cannot be changed`, { code: "file.read-only", errno: "EROFS" });
}

interface Applied {
  output: string;
  tree: unknown;
  asked: number;
  activities: ToolActivity[];
}

const files = ["open/a", "open/b", "locked/c", "locked/d"];

/** Applies a patch to four files, in a sandbox with a locked directory or with full access. */
async function apply(
  lines: readonly string[],
  {
    isLocked,
    answer = "approved",
    links = {},
    inside = isLocked ? lockedFiles : hostFiles,
    outside = () => hostFiles,
    prefix = "brig-reviewed-",
  }: {
    isLocked: boolean;
    answer?: "approved" | "denied";
    links?: Record<string, string>;
    inside?: PatchFiles;
    outside?: (root: string) => PatchFiles;
    prefix?: string;
  },
): Promise<Applied> {
  const root = await realpath(await mkdtemp(join(tmpdir(), prefix)));
  try {
    for (const file of files) {
      await mkdir(join(root, file, ".."), { recursive: true });
      await writeFile(join(root, file), `${file}\nlast\n`);
    }
    for (const [path, target] of Object.entries(links)) await symlink(target, join(root, path));
    const approver = new ScriptedApprover(answer);
    const situation = {
      policy: "on-request" as const,
      isRestricted: true,
      hasNetwork: false,
      canEscalate: true,
    };
    const activities: ToolActivity[] = [];
    const reviewed = await applyReviewedPatch(
      {
        patcher: createPatcher(() => inside),
        review: new SessionApprovals({ situation, approver }),
        escalatedFiles: () => Promise.resolve(outside(root)),
      },
      { tool: "apply_patch", text: patchOf(...lines), cwd: root },
      { onActivity: (activity) => activities.push(activity) },
    );
    if (reviewed.kind === "refused") throw new Error("nothing is asked about before");
    const output = patchOutput(reviewed.outcome, "freeform")
      .replace(/^Wall time.*\n/m, "")
      .replaceAll(root, "");
    return { output, tree: await readTree(root), asked: approver.asked.length, activities };
  } finally {
    await rm(root, { recursive: true });
  }
}

const names = [...files, "open/new", "locked/new", "locked/deep/new"];
const name = fc.constantFrom(...names);
const hunk = fc.oneof(
  fc.tuple(name, fc.nat(9)).map(([file, text]) => [`*** Add File: ${file}`, `+${text}`, "+last"]),
  name.map((file) => [`*** Delete File: ${file}`]),
  fc.tuple(name, fc.nat(9)).map(([file, text]) => [`*** Update File: ${file}`, "@@", " last", `+${text}`]),
  fc
    .tuple(name, name, fc.nat(9))
    .map(([from, to, text]) => [`*** Update File: ${from}`, `*** Move to: ${to}`, "@@", `+${text}`, " last"]),
);

describe("a patch whose end is done outside the sandbox", () => {
  it("comes to what it comes to at once, whatever it consists of", async () => {
    let inTwo = 0;
    const numRuns = runs({ short: 60, deep: 2000 });
    await fc.assert(
      fc.asyncProperty(fc.array(hunk, { minLength: 1, maxLength: 6 }), async (hunks) => {
        const parts = await apply(hunks.flat(), { isLocked: true });
        const whole = await apply(hunks.flat(), { isLocked: false });
        expect({ output: parts.output, tree: parts.tree }).toEqual({
          output: whole.output,
          tree: whole.tree,
        });
        expect(whole.asked).toBe(0);
        expect(parts.asked).toBeLessThanOrEqual(1);
        inTwo += parts.asked;
      }),
      { numRuns },
    );
    expect(inTwo).toBeGreaterThan(numRuns / 15);
  });

  it.each([
    ["a directory that is a link", "notes", "locked", "notes/new", "locked/new"],
    ["a file that is a link", "note", "locked/c", "note", "locked/c"],
    ["a link to what is not there yet", "note", "locked/hook", "note", "locked/hook"],
  ])("does not go where the question did not say: %s", async (_what, link, target, path, real) => {
    const lines = ["*** Add File: open/new", "+x", `*** Add File: ${path}`, "+evil"];
    const options = { isLocked: true, links: { [link]: target } };
    const { output, tree, asked } = await apply(lines, options);
    expect(asked).toBe(1);
    expect(output).toContain(`/${path} leads through a symbolic link to /${real}`);
    expect(JSON.stringify(tree)).not.toContain("evil");
  });

  it.each<[string, keyof PatchFiles, string[]]>([
    ["read", "read", ["*** Update File: locked/c", "@@", "-locked/c", "+evil"]],
    ["written", "writeEach", ["*** Add File: locked/new", "+evil"]],
    ["deleted", "remove", ["*** Delete File: locked/c"]],
    ["given a directory", "mkdir", ["*** Add File: locked/deep/new", "+evil"]],
  ])(
    "follows no link that is put there after the look for links: as a file is %s",
    async (_what, call, lines) => {
      const { output, tree } = await apply(lines, {
        isLocked: true,
        outside: (root) => ({
          ...hostFiles,
          [call]: async (...args: never[]) => {
            await rename(join(root, "locked"), join(root, "aside"));
            await symlink("open", join(root, "locked"));
            return await (hostFiles[call] as (...call: never[]) => unknown)(...args);
          },
        }),
      });
      expect(output).toMatch(/: path `[^`]*` leads through a symbolic link$/m);
      expect(JSON.stringify(tree)).not.toContain("evil");
      expect(tree).toMatchObject({ "open/a": expect.anything() });
    },
  );

  it("is told of as one patch, with its question in between", async () => {
    const lines = [
      "*** Add File: open/new",
      "+x",
      "*** Delete File: locked/c",
      "*** Add File: open/last",
      "+y",
    ];
    const { activities } = await apply(lines, { isLocked: true });
    expect(activities.map(({ kind }) => kind)).toEqual([
      "patch-started",
      "approval-requested",
      "approval-answered",
      "patch-ended",
    ]);
    expect(activities.at(-1)).toMatchObject({
      success: true,
      changes: [{ kind: "add" }, { kind: "delete" }, { kind: "add" }],
    });
  });

  it("stays where it was when that is declined", async () => {
    const lines = ["*** Add File: open/new", "+x", "*** Delete File: locked/c"];
    const { output, tree, activities } = await apply(lines, { isLocked: true, answer: "denied" });
    expect(output).toContain("Failed to delete file /locked/c: Read-only file system (os error 30)");
    expect(JSON.stringify(tree)).toContain("locked/c");
    expect(activities.at(-1)).toMatchObject({
      kind: "patch-ended",
      success: false,
      changes: [{ kind: "add" }],
    });
  });

  it("that does not fit the files is refused without a question", async () => {
    const { output, asked, activities } = await apply(["*** Update File: locked/c", "@@", "-nowhere", "+x"], {
      isLocked: true,
    });
    expect(output).toMatch(/^apply_patch verification failed: /);
    expect(asked).toBe(0);
    expect(activities).toEqual([]);
  });

  it("is no answer to a file whose name says that the kernel refused it", async () => {
    const name = "full (os error 30)";
    const { output, asked, tree } = await apply([`*** Add File: open/${name}`, "+x"], {
      isLocked: false,
      inside: {
        ...hostFiles,
        writeEach: ([file]) => {
          const failure = new BrigError(`there is no place for ${file?.path}`, { code: "file.failed" });
          return Promise.resolve({ written: 0, failure });
        },
      },
    });
    expect(output).toContain(`there is no place for /open/${name}`);
    expect(asked).toBe(0);
    expect(JSON.stringify(tree)).not.toContain(name);
  });

  it("is asked about where the name of a directory has a line end", async () => {
    const lines = ["*** Add File: locked/new", "+x"];
    const { asked, tree } = await apply(lines, { isLocked: true, prefix: "brig\nreviewed-" });
    expect(asked).toBe(1);
    expect(JSON.stringify(tree)).toContain("locked/new");
  });
});
