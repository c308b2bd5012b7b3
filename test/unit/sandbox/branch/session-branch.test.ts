import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SessionBranch } from "../../../../src/sandbox/branch/session-branch.js";
import { FrameType, SPAWN_HEAD_BYTES } from "../../../../src/sandbox/channel/protocol.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import { commitFile, createRepository, git, gitBytes } from "../../../support/git-repositories.js";
import { playedLink } from "../channel/played-link.js";

let directory = "";
let host = "";
/** The sandbox's copy of the repository. */
let agent = "";

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-session-branch-"));
  host = await createRepository(join(directory, "host"));
  agent = join(directory, "agent");
  git(directory, ["clone", "-q", "--no-hardlinks", host, agent]);
});
afterEach(async () => await rm(directory, { recursive: true }));

function argvIn(payload: Buffer): string[] {
  let at = SPAWN_HEAD_BYTES + 4 + payload.readUInt32LE(SPAWN_HEAD_BYTES);
  const count = payload.readUInt32LE(at);
  at += 4;
  return Array.from({ length: count }, () => {
    const end = at + 4 + payload.readUInt32LE(at);
    const text = payload.toString("utf8", at + 4, end);
    at = end;
    return text;
  });
}

/** A sandbox whose git works in the agent's copy. Keeps which commands of git were run. */
async function sandbox(): Promise<{ context: CommandContext; ran: string[] }> {
  const { runner, link } = await playedLink();
  const ran: string[] = [];
  const open = new Map<number, { args: string[]; input: Buffer[] }>();
  const run = (channel: number, args: readonly string[], input: Buffer) => {
    let exitCode = 0;
    let stdout = Buffer.alloc(0);
    try {
      stdout = Buffer.from(gitBytes(agent, args, input));
    } catch (error) {
      exitCode = (error as { status: number }).status;
    }
    for (let at = 0; at < stdout.length; at += 60_000)
      runner.send(FrameType.stdout, channel, stdout.subarray(at, at + 60_000));
    runner.exit(channel, exitCode);
  };
  runner.onFrame = ({ type, channel, payload }) => {
    if (type === FrameType.spawn) {
      const args = argvIn(payload).slice(1);
      ran.push(args.find((one) => /^[a-z]+-[a-z]+$/.test(one)) ?? "");
      const hasStdin = (payload.readUInt8(0) & 2) === 0;
      if (hasStdin) open.set(channel, { args, input: [] });
      else run(channel, args, Buffer.alloc(0));
    } else if (type === FrameType.input) {
      const started = open.get(channel);
      if (started === undefined) return;
      if (payload.length > 0) started.input.push(Buffer.from(payload));
      else {
        open.delete(channel);
        run(channel, started.args, Buffer.concat(started.input));
      }
    }
  };
  return { context: { link, cwd: "/", env: {}, onStuck: () => undefined }, ran };
}

function branchOf(given: { searchPath?: string; writable?: string[] } = {}): SessionBranch {
  const options = { brigHome: join(directory, "home"), searchPath: process.env.PATH ?? "", writable: [] };
  return new SessionBranch({ ...options, hasOwnTree: true, ...given });
}

async function prepared(): Promise<SessionBranch> {
  const branch = branchOf();
  await branch.prepare(host, "0a1b");
  return branch;
}

describe("what keeps git in a sandbox from committing", () => {
  const noticesOf = async () =>
    (await branchOf().prepare(host, "0a1b")).notices.map(({ message }) => message);

  it("is nothing, and commits are never signed, since the keys are outside", async () => {
    const { notices, environment } = await branchOf().prepare(host, "0a1b");
    expect(notices).toEqual([]);
    expect(
      execFileSync("git", ["config", "commit.gpgsign"], {
        cwd: host,
        env: { ...environment, PATH: process.env.PATH },
      }).toString(),
    ).toBe("false\n");
  });

  it("is told where commits have to be signed", async () => {
    git(host, ["config", "commit.gpgSign", "yes"]);
    expect(await noticesOf()).toEqual([expect.stringContaining("are not signed")]);
    git(host, ["config", "commit.gpgSign", "off"]);
    expect(await noticesOf()).toEqual([]);
  });

  it.each(["index.lock", "HEAD.lock"])(
    "is told where %s is left over, and not where it goes soon",
    async (name) => {
      const lock = join(host, ".git", name);
      await writeFile(lock, "");
      expect(await noticesOf()).toEqual([expect.stringContaining(`"${lock}" is left over`)]);
      const telling = noticesOf();
      await rm(lock);
      expect(await telling).toEqual([]);
    },
  );
});

const tipOf = (name: string) => git(host, ["for-each-ref", "--format=%(objectname)", `refs/heads/${name}`]);

describe("the commits of a session", () => {
  it("arrive as one branch, and later ones on top of it", async () => {
    const branch = await prepared();
    const { context } = await sandbox();
    await commitFile(agent, "a", "a\n");
    const first = await commitFile(agent, "b", "b\n");
    const arrived = { kind: "arrived", branch: "brig/0a1b", notTaken: [] };
    expect(await branch.arrive(context)).toEqual({ ...arrived, commit: first, commits: 2 });
    expect(tipOf("brig/0a1b")).toBe(first);
    const second = await commitFile(agent, "c", "c\n");
    expect(await branch.arrive(context)).toEqual({ ...arrived, commit: second, commits: 3 });
    expect(tipOf("brig/0a1b")).toBe(second);
    // The same sandbox, or another one of the session.
    await branch.prepare(host, "other");
    expect(await branch.arrive(context)).toEqual({ ...arrived, commit: second, commits: 3 });
  });

  it("are none where nothing is new, and then no pack is asked for", async () => {
    const branch = await prepared();
    const { context, ran } = await sandbox();
    expect(await branch.arrive(context)).toEqual({ kind: "nothing-new", notTaken: [] });
    git(agent, ["checkout", "-q", "--orphan", "empty"]);
    expect(await branch.arrive(context)).toMatchObject({ kind: "nothing-new" });
    expect(ran).not.toContain("pack-objects");
    expect(tipOf("brig/0a1b")).toBe("");
  });

  it("are none where the host has them below another branch", async () => {
    const branch = await prepared();
    const { context } = await sandbox();
    git(agent, ["fetch", "-q", "origin"]);
    await commitFile(host, "more", "more\n");
    await commitFile(host, "most", "most\n");
    git(agent, ["fetch", "-q", "origin"]);
    git(agent, ["checkout", "-q", "origin/main~1"]);
    expect(await branch.arrive(context)).toEqual({ kind: "nothing-new", notTaken: [] });
  });

  it("of other branches are named, at most twenty of them", async () => {
    const branch = await prepared();
    const { context } = await sandbox();
    git(agent, ["checkout", "-q", "-b", "side"]);
    await commitFile(agent, "side", "x\n");
    git(agent, ["checkout", "-q", "main"]);
    expect(await branch.arrive(context)).toEqual({ kind: "nothing-new", notTaken: ["side"] });
    const side = git(agent, ["rev-parse", "side"]);
    const branches = Array.from({ length: 22 }, (_, at) => `create refs/heads/s${at + 10} ${side}\n`);
    git(agent, ["update-ref", "--stdin"], branches.join(""));
    const tip = await commitFile(agent, "main", "y\n");
    const arrived = await branch.arrive(context);
    expect(arrived).toMatchObject({ kind: "arrived", commit: tip });
    expect(arrived.kind === "arrived" && arrived.notTaken).toHaveLength(20);
  });

  it("arrive one after the other", async () => {
    const branch = await prepared();
    const [one, other] = [await sandbox(), await sandbox()];
    const tip = await commitFile(agent, "a", "a\n");
    const arrivals = await Promise.all([branch.arrive(one.context), branch.arrive(other.context)]);
    for (const arrival of arrivals)
      expect(arrival).toMatchObject({ kind: "arrived", commit: tip, commits: 1 });
    expect(other.ran).not.toContain("pack-objects");
  });

  it("arrive from a fork as a branch of their own", async () => {
    const branch = await prepared();
    const { context } = await sandbox();
    const first = await commitFile(agent, "a", "a\n");
    await branch.arrive(context);
    const another = branch.another();
    expect(another.hasOwnTree).toBe(true);
    await another.prepare(host, "fork");
    const second = await commitFile(agent, "b", "b\n");
    expect(await another.arrive(context)).toMatchObject({ branch: "brig/fork", commit: second, commits: 1 });
    expect([tipOf("brig/0a1b"), tipOf("brig/fork")]).toEqual([first, second]);
  });
});

describe("commits that cannot arrive", () => {
  it("are a value that says why, and do not keep later ones from arriving", async () => {
    const branch = await prepared();
    const { context } = await sandbox();
    const tip = await commitFile(agent, "a", "a\n");
    git(host, ["branch", "brig/0a1b"]);
    expect(await branch.arrive(context)).toEqual({
      kind: "failed",
      message: 'the branch "refs/heads/brig/0a1b" exists already',
      hint: expect.stringContaining("git branch -D"),
    });
    git(host, ["branch", "-q", "-D", "brig/0a1b"]);
    expect(await branch.arrive(context)).toMatchObject({ kind: "arrived", commit: tip });
    git(host, ["branch", "-q", "-D", "brig/0a1b"]);
    await commitFile(agent, "b", "b\n");
    expect(await branch.arrive(context)).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/deleted/),
    });
  });

  it("for a reason that nobody expected have no hint", async () => {
    const branch = await prepared();
    const broken = { link: null } as unknown as CommandContext;
    expect(await branch.arrive(broken)).toMatchObject({
      kind: "failed",
      message: expect.any(String),
      hint: null,
    });
  });

  it("are known before the session begins, where that does not depend on them", async () => {
    const refused = { code: "branch.refused" };
    git(host, ["branch", "brig/0a1b"]);
    await expect(prepared()).rejects.toMatchObject(refused);
    git(host, ["branch", "-q", "-D", "brig/0a1b"]);
    const alternates = join(host, ".git/objects/info/alternates");
    await writeFile(alternates, `${join(agent, ".git/objects")}\n`);
    await expect(prepared()).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/borrows objects/),
    });
    await writeFile(alternates, "");
    await prepared();
    await expect(branchOf({ searchPath: "" }).prepare(host, "x")).rejects.toMatchObject(refused);
    const writable = (process.env.PATH ?? "").split(":");
    await expect(branchOf({ writable }).prepare(host, "x")).rejects.toMatchObject(refused);
    await expect(branchOf({ searchPath: host }).prepare(host, "x")).rejects.toMatchObject(refused);
  });
});
