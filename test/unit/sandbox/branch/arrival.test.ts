import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { receiveCommits, requireFreeRef } from "../../../../src/sandbox/branch/arrival.js";
import { readHostRepository } from "../../../../src/sandbox/branch/host-repository.js";
import { findGit } from "../../../../src/sandbox/branch/session-branch.js";
import {
  commitFile,
  contentOf,
  createRepository,
  forgeCommit,
  forgeObject,
  forgeTree,
  git,
  gitBytes,
  plantProgram,
} from "../../../support/git-repositories.js";

const ref = "refs/heads/brig/0a1b";
const place = { program: await findGit(process.env.PATH ?? "", []) };

let directory = "";
let host = "";
/** The agent's clone of the host's repository. */
let agent = "";
let brigHome = "";

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-branch-"));
  host = await createRepository(join(directory, "host"));
  agent = join(directory, "agent");
  brigHome = join(directory, "home");
  git(directory, ["clone", "-q", "--no-hardlinks", host, agent]);
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

function pack(tip: string, known: readonly string[] = []): Buffer {
  const input = `${[tip, ...known.map((id) => `^${id}`)].join("\n")}\n`;
  return gitBytes(agent, ["pack-objects", "--revs", "--thin", "--stdout", "-q"], input);
}

/** Packs exactly these objects. Git could not walk such a history. */
function packOf(...ids: string[]): Buffer {
  return gitBytes(agent, ["pack-objects", "--stdout", "-q"], `${ids.join("\n")}\n`);
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

async function arrive(
  tip: string,
  bytes: Uint8Array,
  options: { maxBytes?: number; previous?: string } = {},
) {
  const repository = await readHostRepository(host, place);
  return await receiveCommits(
    repository,
    { tip, pack: pieces(bytes) },
    { ...place, brigHome, ref, previous: null, ...options },
  );
}

/** Checks that a refusal leaves the repository byte for byte as it was, and nothing in the quarantine. */
async function expectRefused(tip: string, bytes: Uint8Array, message: RegExp): Promise<void> {
  const before = await contentOf(join(host, ".git"));
  await expect(arrive(tip, bytes)).rejects.toMatchObject({
    code: "branch.refused",
    message: expect.stringMatching(message),
  });
  expect(await contentOf(join(host, ".git"))).toEqual(before);
  expect(await readdir(join(brigHome, "quarantine")).catch(() => [])).toEqual([]);
  git(host, ["fsck", "--strict"]);
}

describe("commits arrive", () => {
  it("as one new branch, and nothing else of the repository changes", async () => {
    const before = await contentOf(join(host, ".git"));
    const base = git(host, ["rev-parse", "HEAD"]);
    await commitFile(agent, "second.txt", "second\n");
    const tip = await commitFile(agent, "third.txt", "third\n");
    expect(await arrive(tip, pack(tip, [base]))).toEqual({ commits: 2 });
    expect(git(host, ["rev-parse", ref])).toBe(tip);
    const after = await contentOf(join(host, ".git"));
    const added = [...after.keys()]
      .filter((path) => !before.has(path))
      .map((path) => path.slice(host.length));
    expect(added.map((path) => path.replace(/[0-9a-f]{40}/, "ID"))).toEqual([
      "/.git/objects/pack/pack-ID.idx",
      "/.git/objects/pack/pack-ID.pack",
      "/.git/refs/heads/brig/0a1b",
    ]);
    for (const [path, content] of before) expect(after.get(path)).toBe(content);
    expect(git(host, ["fsck", "--strict"])).toBe("");
    expect(await readdir(join(brigHome, "quarantine"))).toEqual([]);
  });

  it("with deltas against objects of the host", async () => {
    const lines = Array.from({ length: 5000 }, (_, at) => `line ${at * 7919}\n`).join("");
    const base = await commitFile(agent, "long.txt", lines);
    expect(await arrive(base, pack(base))).toEqual({ commits: 1 });
    const tip = await commitFile(agent, "long.txt", `${lines}one more\n`);
    const bytes = pack(tip, [base]);
    expect(bytes.length).toBeLessThan(2000);
    expect(await arrive(tip, bytes, { previous: base })).toEqual({ commits: 1 });
    git(host, ["fsck", "--strict"]);
  });

  it("with rewritten and with unrelated history, with gitlinks, and with pointers of LFS", async () => {
    git(agent, ["commit", "-q", "--amend", "-m", "rewritten"]);
    const link = `160000,${"1".repeat(40)},module`;
    git(agent, ["update-index", "--add", "--cacheinfo", link]);
    git(agent, ["commit", "-q", "-m", "a submodule"]);
    await commitFile(
      agent,
      "picture.png",
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    );
    git(agent, ["checkout", "-q", "--orphan", "other"]);
    git(agent, ["commit", "-q", "-m", "unrelated"]);
    git(agent, ["merge", "-q", "--allow-unrelated-histories", "-m", "joined", "main"]);
    const tip = git(agent, ["rev-parse", "HEAD"]);
    expect(await arrive(tip, pack(tip))).toEqual({ commits: 5 });
    git(host, ["fsck", "--strict"]);
  });

  it("in a repository without commits, in a shallow one, in one with alternates, and in one with SHA-256", async () => {
    const kinds: Record<string, (at: string) => Promise<void>> = {
      empty: async (at) => {
        await mkdir(at);
        git(at, ["init", "-q", "-b", "main"]);
      },
      shallow: async (at) => {
        await commitFile(host, "more.txt", "more\n");
        git(directory, ["clone", "-q", "--depth", "1", `file://${host}`, at]);
      },
      alternates: async (at) => void git(directory, ["clone", "-q", "--shared", host, at]),
      sha256: async (at) => void (await createRepository(at, ["--object-format=sha256"])),
    };
    for (const [name, create] of Object.entries(kinds)) {
      const made = join(directory, name);
      await create(made);
      agent = join(directory, `${name}-agent`);
      git(directory, ["clone", "-q", "--no-local", `file://${made}`, agent]);
      const known = name === "empty" ? [] : [git(agent, ["rev-parse", "HEAD"])];
      const tip = await commitFile(agent, "new.txt", "new\n");
      const repository = await readHostRepository(made, place);
      const sent = { tip, pack: pieces(pack(tip, known)) };
      const arrived = await receiveCommits(repository, sent, { ...place, brigHome, ref, previous: null });
      expect([name, arrived]).toEqual([name, { commits: 1 }]);
      expect(git(made, ["rev-parse", ref])).toBe(tip);
      git(made, ["fsck", "--strict"]);
    }
  });

  it("a second time onto what arrived first, and not if somebody moved the branch", async () => {
    const first = await commitFile(agent, "a.txt", "a\n");
    await arrive(first, pack(first));
    const second = await commitFile(agent, "b.txt", "b\n");
    await arrive(second, pack(second, [first]), { previous: first });
    expect(git(host, ["rev-parse", ref])).toBe(second);
    const third = await commitFile(agent, "c.txt", "c\n");
    await expect(arrive(third, pack(third), { previous: first })).rejects.toMatchObject({
      code: "branch.refused",
    });
    expect(git(host, ["rev-parse", ref])).toBe(second);
  });
});

describe("forged objects are refused", () => {
  it.each<[string, string, RegExp]>([
    ["an entry ..", "..", /hasDotdot/],
    ["an entry .", ".", /hasDot/],
    ["an entry .git", ".git", /hasDotgit/],
    ["an entry .GIT", ".GIT", /hasDotgit/],
    ["an entry git~1", "git~1", /hasDotgit/],
    ["an entry with a slash", "a/b", /fullPathname/],
  ])("a tree with %s", async (_, name, reason) => {
    const blob = forgeObject(agent, "blob", "x");
    const tree = forgeTree(agent, [{ mode: "100644", name, id: blob }]);
    const tip = forgeCommit(agent, tree);
    await expectRefused(tip, packOf(tip, tree, blob), reason);
  });

  it("a tree with the same name twice, out of order, with a padded mode, or with an empty name", async () => {
    const id = forgeObject(agent, "blob", "x");
    const entry = (name: string, mode = "100644") => ({ mode, name, id });
    const trees: [ReturnType<typeof entry>[], RegExp][] = [
      [[entry("a"), entry("a")], /duplicateEntries/],
      [[entry("b"), entry("a")], /treeNotSorted/],
      [[entry("a", "0100644")], /zeroPaddedFilemode/],
      [[entry("")], /emptyName|malformed|empty filename/],
    ];
    for (const [entries, reason] of trees) {
      const tree = forgeTree(agent, entries);
      const tip = forgeCommit(agent, tree);
      await expectRefused(tip, packOf(tip, tree, id), reason);
    }
  });

  it("a .gitmodules that is a link, or whose url or path is an option", async () => {
    const contents: [string, string, RegExp][] = [
      ["120000", "/etc/passwd", /gitmodulesSymlink/],
      ["100644", '[submodule "a"]\n\tpath = a\n\turl = -u./evil\n', /gitmodulesUrl/],
      ["100644", '[submodule "a"]\n\tpath = -oProxy\n\turl = x\n', /gitmodulesPath/],
      ["100644", '[submodule "../../x"]\n\tpath = a\n\turl = x\n', /gitmodulesName/],
    ];
    for (const [mode, content, reason] of contents) {
      const id = forgeObject(agent, "blob", content);
      const tree = forgeTree(agent, [{ mode, name: ".gitmodules", id }]);
      const tip = forgeCommit(agent, tree);
      await expectRefused(tip, packOf(tip, tree, id), reason);
    }
  });

  it("a malformed commit", async () => {
    const tree = forgeTree(agent, []);
    const commits = [
      `tree ${tree}\n\nno author\n`,
      `tree ${tree}\nauthor A <a@b> never\ncommitter A <a@b> 1 +0000\n\nx`,
    ];
    for (const text of commits) {
      const tip = forgeObject(agent, "commit", text);
      await expectRefused(tip, packOf(tip, tree), /refused: .*(?:missingAuthor|badDate)/);
    }
  });

  it("a tip that is no id, no commit, or not there", async () => {
    const blob = forgeObject(agent, "blob", "x");
    await expectRefused("--upload-pack=x", packOf(blob), /is no id/);
    await expectRefused("HEAD", packOf(blob), /is no id/);
    await expectRefused(blob, packOf(blob), /is a blob/);
    await expectRefused("1".repeat(40), packOf(blob), /did not send the commit/);
  });

  it("a history with a missing parent, tree or file", async () => {
    const blob = forgeObject(agent, "blob", "x");
    const tree = forgeTree(agent, [{ mode: "100644", name: "x", id: blob }]);
    const parent = forgeCommit(agent, tree);
    const tip = forgeCommit(agent, tree, [parent]);
    await expectRefused(tip, packOf(tip, tree, blob), /refused|not complete/);
    await expectRefused(tip, packOf(tip, parent, blob), /refused|not complete/);
    await expectRefused(tip, packOf(tip, parent, tree), /refused|not complete/);
  });

  it("what is not a pack, is cut off, is damaged, or claims four billion objects", async () => {
    const tip = await commitFile(agent, "x.txt", "x\n");
    const whole = pack(tip);
    const damaged = Buffer.from(whole);
    damaged.writeUInt8(damaged.readUInt8(40) ^ 0xff, 40);
    const boastful = Buffer.from(whole);
    boastful.writeUInt32BE(0xffffffff, 8);
    for (const bytes of [
      Buffer.from("not a pack at all"),
      whole.subarray(0, -30),
      damaged,
      boastful,
      Buffer.alloc(0),
    ])
      await expectRefused(tip, bytes, /refused/);
  });

  it("a few kilobytes that are the deltas of an object of gigabytes", async () => {
    const first = await commitFile(agent, "x.txt", "x\n");
    const bytes = bombPack();
    expect(bytes.length).toBeLessThan(200_000);
    await expectRefused(first, bytes, /out of memory/i);
  });

  it("more bytes than the limit", async () => {
    const tip = await commitFile(agent, "x.txt", "x\n");
    await expect(arrive(tip, pack(tip), { maxBytes: 100 })).rejects.toMatchObject({ code: "branch.refused" });
    expect(git(host, ["for-each-ref", "refs/heads/brig"])).toBe("");
  });
});

/** A pack with a blob of 64 KiB, and deltas that make 16 MiB of it, and 4 GiB of that. */
function bombPack(): Buffer {
  const sizes = [65_536, 16 * 1024 * 1024, 4 * 1024 * 1024 * 1024];
  const entries = [Buffer.concat([entryHeader(3, sizes[0] ?? 0), deflateSync(Buffer.alloc(65_536))])];
  for (const [at, size] of sizes.slice(1).entries()) {
    const base = sizes[at] ?? 0;
    // Each instruction copies 65 536 bytes from the start of the base.
    const copies = Array.from({ length: Math.min(size / 65_536, 65_536) }, () => Buffer.from([0x80]));
    const delta = Buffer.concat([varint(base), varint(size), ...copies]);
    const back = entries[at]?.length ?? 0;
    entries.push(Buffer.concat([entryHeader(6, delta.length), offset(back), deflateSync(delta)]));
  }
  const head = Buffer.from("PACK\0\0\0\x02\0\0\0\x03", "latin1");
  const body = Buffer.concat([head, ...entries]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) | (rest >= 128 ? 0x80 : 0));
    if (rest < 128) return Buffer.from(bytes);
  }
}

function entryHeader(type: number, size: number): Buffer {
  const rest = Math.floor(size / 16);
  const first = (type << 4) | (size % 16) | (rest > 0 ? 0x80 : 0);
  return Buffer.concat([Buffer.from([first]), rest > 0 ? varint(rest) : Buffer.alloc(0)]);
}

/** How far back in the pack the base of a delta is, in git's own way of writing it. */
function offset(back: number): Buffer {
  const bytes = [back % 128];
  for (let rest = Math.floor(back / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest -= 1;
    bytes.unshift((rest % 128) | 0x80);
  }
  return Buffer.from(bytes);
}

describe("nothing of the repository's configuration runs", () => {
  it("neither hooks nor programs that settings name", async () => {
    const canary = join(directory, "canary");
    const program = await plantProgram(join(directory, "program"), canary);
    for (const hook of [
      "reference-transaction",
      "post-update",
      "update",
      "pre-receive",
      "post-receive",
      "pre-auto-gc",
    ])
      await plantProgram(join(host, ".git", "hooks", hook), canary);
    for (const name of [
      "core.fsmonitor",
      "core.sshCommand",
      "core.editor",
      "core.pager",
      "core.askPass",
      "core.gitProxy",
      "core.alternateRefsCommand",
      "credential.helper",
      "uploadpack.packObjectsHook",
      "diff.external",
      "gpg.program",
      "filter.x.process",
      "filter.x.clean",
      "alias.update-ref",
      "alias.rev-list",
      "hook.x.command",
    ])
      git(host, ["config", name, program]);
    git(host, ["config", "hook.x.event", "reference-transaction"]);
    git(host, ["config", "remote.origin.url", `ext::${program}`]);
    const tip = await commitFile(agent, "x.txt", "x\n");
    await arrive(tip, pack(tip));
    expect(git(directory, ["--git-dir", join(host, ".git"), "rev-parse", ref])).toBe(tip);
    expect(existsSync(canary)).toBe(false);
    // The canary works: an ordinary git does run the hook.
    git(host, ["-c", "core.fsmonitor=false", "update-ref", "refs/heads/other", tip]);
    expect(existsSync(canary)).toBe(true);
  });
});

it("git of the workspace is never run, whatever PATH says", async () => {
  const bin = join(host, "node_modules/.bin");
  const outside = join(directory, "bin");
  await mkdir(bin, { recursive: true });
  await mkdir(outside);
  await plantProgram(join(bin, "git"), join(directory, "canary"));
  await symlink(join(bin, "git"), join(outside, "git"));
  await symlink(bin, join(directory, "linked-bin"));
  const path = `:.:node_modules/.bin:${bin}:${outside}:${directory}/linked-bin`;
  expect(await findGit(`${path}:${process.env.PATH}`, [host])).toBe(place.program);
  await expect(findGit(path, [host])).rejects.toMatchObject({ code: "branch.refused" });
  expect(await findGit(path, [])).toBe(join(bin, "git"));
});

describe("a repository that cannot receive a branch is refused with the reason", () => {
  const refusal = (workspace: string) =>
    readHostRepository(workspace, place).catch((error: unknown) => error);

  it("a worktree, a submodule, a partial clone, a broken one, or none", async () => {
    const worktree = join(directory, "worktree");
    git(host, ["worktree", "add", "-q", worktree]);
    expect(await refusal(worktree)).toMatchObject({
      message: expect.stringContaining("linked worktree or a submodule"),
    });

    const partial = join(directory, "partial");
    git(host, ["config", "uploadpack.allowFilter", "true"]);
    git(directory, ["clone", "-q", "--filter=blob:none", `file://${host}`, partial]);
    expect(await refusal(partial)).toMatchObject({ message: expect.stringContaining("partial clone") });

    expect(await refusal(directory)).toMatchObject({ message: expect.stringContaining("does not exist") });

    const linked = join(directory, "linked");
    await mkdir(linked);
    await symlink(join(host, ".git"), join(linked, ".git"));
    expect(await refusal(linked)).toMatchObject({ message: expect.stringContaining("is not a directory") });

    await writeFile(join(agent, ".git", "config"), "[core\n");
    expect(await refusal(agent)).toMatchObject({
      message: expect.stringContaining("cannot read the repository"),
    });
    await rename(join(agent, ".git", "HEAD"), join(agent, ".git", "NOT-HEAD"));
    expect(await refusal(agent)).toMatchObject({ message: expect.stringContaining("has no HEAD") });
  });

  it("a branch in the way of the new one, and a branch that exists", async () => {
    git(host, ["branch", "brig"]);
    const inTheWay = await readHostRepository(host, place);
    expect(() => requireFreeRef(inTheWay, { ref, previous: null })).toThrow(/"brig" is in the way/);
    git(host, ["branch", "-D", "brig"]);
    git(host, ["branch", "brig/0a1b"]);
    const existing = await readHostRepository(host, place);
    expect(() => requireFreeRef(existing, { ref, previous: null })).toThrow(/exists already/);
  });
});
