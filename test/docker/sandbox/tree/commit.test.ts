import { chmod, lstat, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { sandboxFiles } from "../../../../src/sandbox/files/files.js";
import {
  commitTree,
  makeStage,
  newStage,
  recoverTree,
  stagedPath,
  type TreeRecord,
} from "../../../../src/sandbox/tree/tree-commit.js";
import { asItIs, describeTree, stageWith } from "../../../support/commits.js";
import { testEngine } from "../../../support/engine.js";
import { openApplier, openOverlayTree } from "../../../support/overlay-tree.js";

const target = "/base";
const put = (path: string, content: number, expects: TreeRecord["expects"] = "any"): TreeRecord => ({
  action: "put",
  path,
  content,
  mode: 0o644,
  expects,
});

describe("a commit", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await testEngine();
  });

  it("writes, makes, links and removes, whatever type was there before", async () => {
    await using applier = await openApplier(engine, {
      base: `mkdir -p d/sub gone/deep; echo 1 > d/a; echo 1 > f; ln -s d l; echo 1 > gone/deep/x; echo 1 > d/sub/y
             mkdir swap; echo 1 > swap/z; echo keep > kept`,
    });
    const stage = await stageWith(applier.context, {
      target,
      contents: ["new a", "was a link", "was a directory", "in new"],
    });
    const records: TreeRecord[] = [
      {
        action: "mkdir",
        path: "made",
        mode: 0o555,
        expects: "absent",
        modifiedNs: 1_000_000_000_000_000_000n,
      },
      { ...put("made/inside", 3, "absent"), mode: 0o600 } as TreeRecord,
      {
        ...put("d/a", 0, await asItIs(applier.base, "d/a")),
        modifiedNs: 1_500_000_000_123_456_789n,
      } as TreeRecord,
      put("l", 1, await asItIs(applier.base, "l")),
      put("swap", 2, await asItIs(applier.base, "swap")),
      { action: "mkdir", path: "f", mode: 0o750, expects: await asItIs(applier.base, "f") },
      { action: "symlink", path: "f/link", linkTarget: Buffer.from("../\xff", "latin1"), expects: "absent" },
      { action: "remove", path: "gone", expects: await asItIs(applier.base, "gone") },
      { action: "mkdir", path: "d/sub", mode: 0o700, expects: await asItIs(applier.base, "d/sub") },
      { action: "check", path: "kept", expects: await asItIs(applier.base, "kept") },
      { action: "remove", path: "never/was", expects: "any" },
    ];
    const result = await commitTree(applier.context, { target, stage, records });
    expect(result).toEqual({ committed: true });
    expect((await describeTree(applier.base)).map((line) => line.replace(/ [0-9a-f]{12}$/, ""))).toEqual([
      "d/ 755",
      "d/a 644",
      "d/sub/ 700",
      "d/sub/y 644",
      "f/ 750",
      "f/link -> ../\ufffd",
      "kept 644",
      "l 644",
      "made/ 555",
      "made/inside 600",
      "swap 644",
    ]);
    expect(await readFile(join(applier.base, "d/a"), "utf8")).toBe("new a");
    expect(await readFile(join(applier.base, "l"), "utf8")).toBe("was a link");
    expect((await lstat(join(applier.base, "d/a"), { bigint: true })).mtimeNs).toBe(
      1_500_000_000_123_456_789n,
    );
    expect((await lstat(join(applier.base, "made"), { bigint: true })).mtimeNs).toBe(10n ** 18n);
  });

  it("writes nothing when one of a hundred files is not as expected, and names it", async () => {
    await using applier = await openApplier(engine, {
      base: "mkdir d; for i in {0..99}; do echo $i > d/$i; done",
    });
    const numbers = Array.from({ length: 100 }, (_, index) => index);
    const records = await Promise.all(
      numbers.map(async (n) => put(`d/${n}`, n, await asItIs(applier.base, `d/${n}`))),
    );
    const contents = numbers.map((n) => `changed ${n}`);
    await writeFile(join(applier.base, "d/57"), "of the user");
    const before = await describeTree(applier.base);
    const stage = await stageWith(applier.context, { target, contents });
    expect(await commitTree(applier.context, { target, stage, records })).toEqual({
      committed: false,
      conflicts: [{ path: Buffer.from("d/57"), reason: "changed" }],
      omitted: 0,
    });
    expect(await describeTree(applier.base)).toEqual(before);

    const known = await Promise.all(
      numbers.map(async (n) => put(`d/${n}`, n, await asItIs(applier.base, `d/${n}`))),
    );
    const again = await stageWith(applier.context, { target, contents });
    expect(await commitTree(applier.context, { target, stage: again, records: known })).toEqual({
      committed: true,
    });
    expect(await readFile(join(applier.base, "d/57"), "utf8")).toBe("changed 57");
  });

  it("names each path that is not as expected, with the reason", async () => {
    await using applier = await openApplier(engine, {
      base: "mkdir d old; echo 1 > d/a; echo 1 > f; ln -s d link; echo 1 > old/x; touch -h -d 2020-01-01 link",
    });
    const known = await asItIs(applier.base, "f");
    const long = 4_000_000_000_000_000_000n;
    const stage = await stageWith(applier.context, { target, contents: ["x"] });
    const records: TreeRecord[] = [
      put("d/a", 0, "absent"),
      put("d/missing", 0, known),
      put("d", 0, known),
      put("f", 0, { ...(known as object), ino: 1n } as TreeRecord["expects"]),
      put("f/below", 0, "any"),
      put("link/through", 0, "any"),
      put("nowhere/x", 0, "any"),
      put(".brig-stage-mine", 0, "any"),
      { action: "remove", path: "old", expects: { type: "directory", notSinceNs: 0n } },
      { action: "check", path: "old/x", expects: { type: "file", notSinceNs: long } },
    ];
    const before = await describeTree(applier.base);
    const result = await commitTree(applier.context, { target, stage, records });
    expect(result.committed).toBe(false);
    const found = result.committed
      ? []
      : result.conflicts.map(({ path, reason }) => [path.toString(), reason]);
    expect(Object.fromEntries(found)).toEqual({
      ".brig-stage-mine": "reserved",
      d: "type",
      "d/a": "exists",
      "d/missing": "missing",
      f: "changed",
      "f/below": "parent",
      "link/through": "parent",
      "nowhere/x": "parent",
      old: "changed",
    });
    expect(await describeTree(applier.base)).toEqual(before.filter((line) => !line.includes(".brig-stage")));
  });

  it("does not cross into what is mounted below the target", async () => {
    await using other = await openApplier(engine, {});
    await using applier = await openApplier(engine, {
      base: "mkdir mounted",
      mounts: { [`${target}/mounted`]: other.base },
    });
    const stage = await stageWith(applier.context, { target, contents: ["x"] });
    const result = await commitTree(applier.context, {
      target,
      stage,
      records: [put("mounted/x", 0), put("y", 0)],
    });
    expect(result).toMatchObject({ conflicts: [{ path: Buffer.from("mounted/x"), reason: "mount" }] });
    expect(await readdir(other.base)).toEqual([]);
  });

  it("puts everything back when it fails in the middle", async () => {
    await using applier = await openApplier(engine, {
      base: "mkdir a zz z; echo 1 > a/x; echo 1 > zz/x; echo 1 > z/x; mkdir -p full/of; echo 1 > full/of/x; chmod 555 full/of full; chmod 555 zz",
    });
    const before = await describeTree(applier.base);
    const stage = await stageWith(applier.context, { target, contents: ["2", "2", "2"] });
    const commit = commitTree(applier.context, {
      target,
      stage,
      records: [
        put("a/x", 0),
        { action: "mkdir", path: "b", mode: 0o500, expects: "absent" },
        put("b/x", 1),
        { action: "remove", path: "full", expects: "any" },
        { action: "mkdir", path: "z", mode: 0o500, expects: "any" },
        put("zz/x", 2),
      ],
    });
    await expect(commit).rejects.toMatchObject({
      code: "file.not-permitted",
      message: expect.stringContaining("/base/zz/x"),
    });
    expect(await describeTree(applier.base)).toEqual(before);
    await chmod(join(applier.base, "zz"), 0o755);
    const again = await stageWith(applier.context, { target, contents: ["2"] });
    const records = [put("zz/x", 0), { action: "remove", path: "full", expects: "any" } as const];
    expect(await commitTree(applier.context, { target, stage: again, records })).toEqual({ committed: true });
    expect(await readdir(applier.base)).not.toContain("full");
  });

  it("never writes through a symbolic link that takes a directory's place meanwhile", async () => {
    await using outside = await openApplier(engine, {});
    await using applier = await openApplier(engine, {
      base: "mkdir d",
      mounts: { "/outside": outside.base },
    });
    const swap = `cd ${target}; until test -e stop; do mv d real; ln -s /outside d; rm d; mv real d; done`;
    const swapping = applier.shell(swap);
    let committed = 0;
    for (let i = 0; i < 150; i++) {
      const stage = await stageWith(applier.context, { target, contents: ["x"] });
      const result = await commitTree(applier.context, {
        target,
        stage,
        records: [put(`d/by-commit-${i}`, 0)],
      }).catch(() => ({ committed: false }));
      if (result.committed) committed++;
    }
    // Without the protection, the same attempts succeed in writing outside.
    const files = sandboxFiles(applier.context);
    // One that is moved back in the middle leaves only the file that was to be renamed.
    while (!(await readdir(outside.base)).includes("by-write"))
      await files.write(`${target}/d/by-write`, "x").catch(() => undefined);
    await writeFile(join(applier.base, "stop"), "");
    await swapping;
    const out = await readdir(outside.base);
    expect(out.filter((name) => name.startsWith("by-commit"))).toEqual([]);
    expect(out.join()).toContain("by-write");
    expect(committed).toBeGreaterThan(0);
  });

  it("leaves a full disk as it was", async () => {
    await using applier = await openApplier(engine, {
      tmpfs: { "/small": "size=1m,nr_inodes=20,uid=1000,mode=755" },
    });
    await applier.shell("cd /small; echo 1 > a; mkdir d");
    const small = "/small";
    const large = newStage();
    await makeStage(applier.context, { target: small, stage: large });
    const write = sandboxFiles(applier.context).write(
      stagedPath({ target: small, stage: large }, 0),
      Buffer.alloc(4 << 20),
    );
    await expect(write).rejects.toMatchObject({ errno: "ENOSPC" });
    expect(await recoverTree(applier.context, { target: small, stage: large })).toEqual({ undone: 0 });
    expect(await applier.shell("ls -A /small")).toBe("a\nd\n");

    const stage = await stageWith(applier.context, { target: small, contents: ["2"] });
    const many = Array.from(
      { length: 30 },
      (_, n) => ({ action: "mkdir", path: `m${n}`, mode: 0o755, expects: "absent" }) as const,
    );
    const commit = commitTree(applier.context, { target: small, stage, records: [put("a", 0), ...many] });
    await expect(commit).rejects.toMatchObject({ errno: "ENOSPC" });
    expect(await applier.shell("ls -A /small; cat /small/a")).toBe("a\nd\n1\n");
  });

  it("takes only a stage that nobody else can write to, and only contents that are files of their own", async () => {
    await using applier = await openApplier(engine, { base: "echo secret > secret; chmod 600 secret" });
    const open = await stageWith(applier.context, { target, contents: ["x"] });
    await chmod(join(applier.base, open.name), 0o777);
    const commit = (stage: typeof open) =>
      commitTree(applier.context, { target, stage, records: [put("new", 0)] });
    await expect(commit(open)).rejects.toMatchObject({ code: "file.not-permitted" });
    for (const trick of ["ln /base/secret 0", "ln -s /base/secret 0", "mkfifo 0", "mkdir 0", "true"]) {
      const stage = newStage();
      await makeStage(applier.context, { target, stage });
      await applier.shell(`cd /base/${stage.name}; ${trick}`);
      await expect(commit(stage)).rejects.toMatchObject({ errno: "EBADF" });
    }
    expect((await lstat(join(applier.base, "secret"))).mode & 0o777).toBe(0o600);
    await expect(lstat(join(applier.base, "new"))).rejects.toThrow("ENOENT");
  });

  it("changes two thousand paths at once, and cleans up directories that nobody may enter", async () => {
    await using applier = await openApplier(engine, { base: "mkdir -p x/y; touch x/y/z; chmod 000 x/y" });
    const numbers = Array.from({ length: 2000 }, (_, index) => index);
    const stage = await stageWith(applier.context, { target, contents: numbers.map(String) });
    const records = [
      ...numbers.map((n) => put(`f${n}`, n, "absent")),
      { action: "remove", path: "x", expects: "any" } as const,
    ];
    expect(await commitTree(applier.context, { target, stage, records })).toEqual({ committed: true });
    expect((await readdir(applier.base)).length).toBe(2000);
  });

  it("brings a copy-on-write tree to the state of another", async () => {
    await using tree = await openOverlayTree({
      base: "mkdir -p d/sub kept/in gone; echo 1 > d/a; echo 1 > d/sub/b; echo 1 > f; echo 1 > gone/x; echo 1 > kept/in/y",
    });
    const { context } = tree.keeper;
    const owner = { uid: 1000, gid: 1000 };
    const stage = await stageWith(context, { target: "/merged", contents: ["2", "3", "4"] });
    const records: TreeRecord[] = [
      { action: "put", path: "d", content: 0, mode: 0o600, owner, expects: "any" },
      { action: "mkdir", path: "f", mode: 0o700, owner, expects: "any" },
      { action: "put", path: "f/in", content: 1, mode: 0o000, owner, expects: "any" },
      { action: "remove", path: "gone", expects: "any" },
      { action: "mkdir", path: "kept", mode: 0o500, owner, expects: "any" },
      { action: "put", path: "kept/in/y", content: 2, mode: 0o644, owner, expects: "any" },
      { action: "symlink", path: "l", linkTarget: Buffer.from("f/in"), owner, expects: "any" },
    ];
    expect(await commitTree(context, { target: "/merged", stage, records })).toEqual({ committed: true });
    const { changes, lines } = await tree.scan();
    expect(lines).toEqual([
      "modified d (file, was directory)",
      "modified f (directory, was file)",
      "added f/in (file)",
      "deleted gone (directory)",
      "modified kept (directory)",
      "modified kept/in/y (file)",
      "added l (symlink)",
    ]);
    expect(changes.every(({ now }) => now === null || now.uid === 1000)).toBe(true);
    expect(await tree.agent.shell("cat /repo/kept/in/y; chmod 600 /repo/f/in; cat /repo/l")).toBe("43");
  });

  it("waits for nobody for ever who holds its lock", async () => {
    await using applier = await openApplier(engine, {});
    const stage = await stageWith(applier.context, { target, contents: ["x"] });
    const holding = applier.shell(
      "flock /base sh -c 'touch /base/held; until test -e /base/free; do sleep 0.05; done'",
    );
    await expect.poll(() => readdir(applier.base)).toContain("held");
    const commit = commitTree(applier.context, { target, stage, records: [put("new", 0)] });
    await expect(commit).rejects.toMatchObject({ errno: "EAGAIN" });
    await writeFile(join(applier.base, "free"), "");
    await holding;
    expect(await commitTree(applier.context, { target, stage, records: [put("new", 0)] })).toEqual({
      committed: true,
    });
    await rm(join(applier.base, "new"));
    await mkdir(join(applier.base, "new"));
  });
});
