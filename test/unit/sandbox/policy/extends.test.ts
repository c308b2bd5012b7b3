import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { stringify } from "smol-toml";
import { describe, expect, it, onTestFinished } from "vitest";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import { SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import { parsePolicy } from "../../../../src/sandbox/policy/parse-policy.js";
import type { Policy } from "../../../../src/sandbox/policy/policy.js";
import { policyDirectory } from "../../../../src/sandbox/policy/policy-directory.js";

const of = (toml: string) => parsePolicy(toml, "given.toml");
const mode = async (name: string) => (await loadPolicy(name)).policy;
const tmpfsOf = (policy: Policy, path: string) => policy.tmpfs.find((one) => one.path === path);

describe("a policy that extends a mode", () => {
  it.each(SANDBOX_MODES)("and says nothing else is that mode: %s", async (name) => {
    expect(of(`extends = "${name}"`)).toEqual(await mode(name));
  });

  it("is taken by --policy as a file", async () => {
    const directory = await mkdtemp(join(tmpdir(), "brig-extends-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const file = join(directory, "mine.toml");
    await writeFile(file, 'extends = "workspace-write"\n[limits]\npids = 99\n');
    expect((await loadPolicy(file)).policy.limits.pids).toBe(99);
  });

  it("needs only what differs, key by key in the tables", async () => {
    const base = await mode("workspace-write");
    const policy = of(
      'extends = "workspace-write"\nuser = "1:2"\n[limits]\ncpus = 1\n[overrides]\nnetwork = false',
    );
    expect(policy).toEqual({
      ...base,
      user: "1:2",
      limits: { ...base.limits, cpus: 1 },
      overrides: { ...base.overrides, network: false },
    });
  });

  it("is the example of the documentation", async () => {
    const text = await readFile(join(policyDirectory, "README.md"), "utf8");
    const [, example = ""] = /```toml\n(extends[^`]*)```/.exec(text) ?? [];
    expect(of(example).limits.memoryMb).toBe(1024);
  });

  it("adds protected names, and removes none", () => {
    const { workspace } = of('extends = "workspace-write"\n[workspace]\nprotected = ["ci", ".git"]');
    expect(workspace).toEqual({ access: "rw", protected: [".git", ".codex", ".agents", ".brig", "ci"] });
  });

  it("whose workspace becomes writable protects the names of workspace-write, which read-only need not name", async () => {
    const writable = of('extends = "read-only"\n[workspace]\naccess = "rw"');
    expect(writable.workspace).toEqual((await mode("workspace-write")).workspace);
    expect(of('extends = "read-only"\nuser = "1:2"').workspace.protected).toEqual([]);
  });

  it("changes a directory in memory by its path, keeps the others, and may add one", async () => {
    const base = await mode("workspace-write");
    const policy = of(
      'extends = "workspace-write"\n[[tmpfs]]\npath = "/tmp"\nexec = false\n' +
        '[[tmpfs]]\npath = "/var/tmp"\nsizeMb = 8\nmaxInodes = 99\nexec = false\nmode = "1777"',
    );
    expect(tmpfsOf(policy, "/tmp")).toEqual({ ...tmpfsOf(base, "/tmp"), exec: false });
    expect(tmpfsOf(policy, "/run")).toEqual(tmpfsOf(base, "/run"));
    expect(policy.tmpfs.map(({ path }) => path).toSorted()).toEqual([
      "/home/brig",
      "/run",
      "/tmp",
      "/var/tmp",
    ]);
  });

  it("with less memory has smaller directories in memory, except where it says their size", async () => {
    const base = await mode("workspace-write");
    const policy = of(
      'extends = "workspace-write"\n[limits]\nmemoryMb = 512\n[[tmpfs]]\npath = "/run"\nsizeMb = 7',
    );
    expect(tmpfsOf(policy, "/tmp")?.sizeMb).toBe(128);
    expect(tmpfsOf(policy, "/run")?.sizeMb).toBe(7);
    expect(policy.limits).toEqual({ ...base.limits, memoryMb: 512, shmMb: 16 });
    const larger = of('extends = "workspace-write"\n[limits]\nmemoryMb = 8192');
    expect([larger.tmpfs, larger.limits.shmMb]).toEqual([base.tmpfs, base.limits.shmMb]);
  });

  it.each(["workspace_write", "./other.toml", "/etc/passwd", "toString", ""])(
    "that does not exist is refused: %j",
    (name) => {
      expect(() => of(`extends = ${JSON.stringify(name)}`)).toThrow(
        'extends must be one of "read-only", "workspace-write", "danger-full-access"',
      );
    },
  );

  it.each([
    ["extends = 1", "extends must be"],
    ['extends = ["read-only"]', "extends must be"],
    ['extend = "read-only"', "did you mean extends?"],
    ['extends = "read-only"\nnetwrok = "none"', "netwrok is not a field of a policy; did you mean network?"],
    ['extends = "read-only"\nlimits = 1', "limits must be a table"],
    ['extends = "read-only"\ntmpfs = "/tmp"', "tmpfs must be a list"],
    ['extends = "read-only"\n[workspace]\nprotected = ".git"', "workspace.protected must be a list"],
    ['extends = "read-only"\n[limits]\npid = 9', "limits.pid is not a field of a policy; did you mean pids?"],
    ['extends = "read-only"\n[[tmpfs]]\npath = "/x"', "tmpfs[0].sizeMb is missing"],
    ['[limits]\nextends = "read-only"', "limits.extends is not a field"],
  ])("is refused where something is wrong: %j", (toml, message) => {
    expect(() => of(toml)).toThrow(message);
  });

  it("is never looser than the mode, whatever harmless part of it is written down again", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SANDBOX_MODES),
        fc.uniqueArray(fc.constantFrom("a", ".git", ".env")),
        fc.integer({ min: 64, max: 4096 }),
        (name, names, memoryMb) => {
          const written = { extends: name, workspace: { protected: names }, limits: { memoryMb } };
          const [policy, base] = [of(stringify(written)), of(`extends = "${name}"`)];
          for (const one of base.workspace.protected) expect(policy.workspace.protected).toContain(one);
          for (const { path, sizeMb } of policy.tmpfs)
            expect(sizeMb).toBeLessThanOrEqual(tmpfsOf(base, path)?.sizeMb ?? 0);
          expect({ ...policy, workspace: 0, limits: 0, tmpfs: 0 }).toEqual({
            ...base,
            ...{ workspace: 0, limits: 0, tmpfs: 0 },
          });
        },
      ),
    );
  });
});
