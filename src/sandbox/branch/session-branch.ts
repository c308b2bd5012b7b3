import { constants } from "node:fs";
import { access, realpath } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { CommandContext } from "../process/command.js";
import { RunningProcess } from "../process/process.js";
import { exec } from "../process/run-to-end.js";
import type { BranchArrival } from "../receipt/receipt.js";
import type { ExecResult } from "../sandbox-types.js";
import { type QuarantinePlace, receiveCommits, requireFreeRef } from "./arrival.js";
import { refused } from "./host-git.js";
import { type HostRepository, leftLock, readHostRepository, requireOwnObjects } from "./host-repository.js";

/** A branch that another process has begun. */
interface BegunBranch {
  workspace: string;
  /** Without `refs/heads/`. */
  name: string;
}

interface SessionBranchOptions {
  brigHome: string;
  /** The value of PATH on this machine, in which git is looked for. */
  searchPath: string;
  /** Other directories, besides the workspace, that commands may write to. */
  writable: readonly string[];
  /** Whether only `.git` is copy-on-write, and not the whole workspace. */
  hasOwnTree: boolean;
}

/** Everything that a sandbox needs so that git in it can commit. */
export interface PreparedBranch {
  /** Variables for commands. */
  environment: Readonly<Record<string, string>>;
  /** Problems: each one says what does not work. */
  notices: readonly BrigError[];
}

const NAMED_BRANCHES = 20;

/** The keys to sign with are outside, so a commit that has to be signed would fail. */
const UNSIGNED: PreparedBranch["environment"] = {
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "commit.gpgSign",
  GIT_CONFIG_VALUE_0: "false",
  GIT_CONFIG_KEY_1: "tag.gpgSign",
  GIT_CONFIG_VALUE_1: "false",
};

/**
 * Brings the commits of a session to the host as one branch. All sandboxes with the same settings work on the
 * same copy of the repository, so they share one `SessionBranch`.
 */
export class SessionBranch {
  readonly hasOwnTree: boolean;
  readonly #options: SessionBranchOptions;
  #workspace = "";
  #name: string | undefined;
  #last: Extract<BranchArrival, { kind: "arrived" }> | null = null;
  #arriving: Promise<unknown> = Promise.resolve();

  constructor(options: SessionBranchOptions, begun?: BegunBranch) {
    this.hasOwnTree = options.hasOwnTree;
    this.#options = options;
    this.#workspace = begun?.workspace ?? "";
    this.#name = begun?.name;
  }

  /** Its name without `refs/heads/`; undefined before `prepare`. */
  get name(): string | undefined {
    return this.#name;
  }

  /** The branch of a session with the same settings that another process has begun. */
  resumed(begun: BegunBranch): SessionBranch {
    return new SessionBranch(this.#options, begun);
  }

  /**
   * Returns one for a sandbox with a different copy of the repository, whose commits arrive as another
   * branch.
   */
  another(): SessionBranch {
    return new SessionBranch(this.#options);
  }

  /** Checks that the workspace's repository can receive the branch. Error: `branch.refused`. */
  async prepare(workspace: string, sessionId: string): Promise<PreparedBranch> {
    this.#workspace = workspace;
    this.#name ??= `brig/${sessionId}`;
    await requireOwnObjects(workspace);
    const repository = await readHostRepository(workspace, await this.#place());
    requireFreeRef(repository, { ref: this.#ref, previous: this.#last?.commit ?? null });
    return { environment: UNSIGNED, notices: noticesOf(repository, await leftLock(workspace)) };
  }

  /** Brings the commits of the checked-out branch to the host. Never throws. */
  async arrive(context: CommandContext): Promise<BranchArrival> {
    // One after the other, because two sandboxes of a session may be closed at the same time.
    const before = this.#arriving;
    const arrival = before.then(() => this.#arrive(context)).catch(failed);
    this.#arriving = arrival;
    return await arrival;
  }

  async #place(): Promise<QuarantinePlace> {
    const { brigHome, searchPath, writable } = this.#options;
    return { brigHome, program: await findGit(searchPath, [this.#workspace, ...writable]) };
  }

  get #ref(): string {
    return `refs/heads/${this.#name}`;
  }

  async #arrive(context: CommandContext): Promise<BranchArrival> {
    const sent = await readSentRefs(context, this.#workspace);
    const place = await this.#place();
    const repository = await readHostRepository(this.#workspace, place);
    const { tip } = sent;
    const notTaken = sent.branches
      .filter(({ id }) => id !== tip && !hasTip(repository, id))
      .map(({ name }) => name)
      .slice(0, NAMED_BRANCHES);
    if (this.#last?.commit === tip) return { ...this.#last, notTaken };
    if (tip === null || hasTip(repository, tip)) return { kind: "nothing-new", notTaken };
    const previous = this.#last?.commit ?? null;
    requireFreeRef(repository, { ref: this.#ref, previous });
    await using pack = await sendPack(context, {
      workspace: this.#workspace,
      tip,
      known: repository.refs.map(({ id }) => id),
    });
    const { commits } = await receiveCommits(
      repository,
      { tip, pack: pack.bytes },
      { ...place, ref: this.#ref, previous },
    );
    if (commits === 0) return { kind: "nothing-new", notTaken };
    const branch = this.#name ?? "";
    this.#last = {
      kind: "arrived",
      branch,
      commit: tip,
      commits: commits + (this.#last?.commits ?? 0),
      notTaken,
    };
    return this.#last;
  }
}

function noticesOf({ signsCommits }: HostRepository, lock: string | null): BrigError[] {
  const notices: BrigError[] = [];
  if (signsCommits)
    notices.push(
      new BrigError(
        "commits from the sandbox are not signed, although commit.gpgSign is set: your key is not in it",
        {
          code: "branch.refused",
          hint: "sign them when you merge: git merge -S, or git rebase --exec 'git commit --amend --no-edit -S'",
        },
      ),
    );
  if (lock !== null)
    notices.push(
      new BrigError(
        `git in the sandbox cannot commit: ${JSON.stringify(lock)} is left over, or a git is at work`,
        {
          code: "branch.refused",
          hint: `if no git is running: rm ${lock}`,
        },
      ),
    );
  return notices;
}

function hasTip({ refs }: HostRepository, commit: string): boolean {
  return refs.some(({ id }) => id === commit);
}

function failed(error: unknown): BranchArrival {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof BrigError ? (error.hint ?? null) : null;
  return { kind: "failed", message, hint };
}

/**
 * Finds git on this machine. Skips directories that commands of the sandbox may write to, such as
 * `node_modules/.bin` of the workspace, because a command could have put a program of its own there. Error:
 * `branch.refused`.
 */
export async function findGit(searchPath: string, writable: readonly string[]): Promise<string> {
  const closed = (await Promise.all(writable.map(resolved))).concat(writable);
  const isTrusted = (path: string) => !closed.some((directory) => isAtOrBelow(path, directory));
  for (const directory of searchPath.split(":").filter((one) => one.startsWith("/"))) {
    const path = await realpath(join(directory, "git")).catch(() => null);
    if (path === null || !isTrusted(path) || !isTrusted(await resolved(directory))) continue;
    if (await isExecutable(path)) return path;
  }
  throw refused("git was not found on this machine", "install git, or check PATH");
}

async function resolved(path: string): Promise<string> {
  return await realpath(path).catch(() => path);
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** The sandbox's report about its copy of the repository. Nothing in it can be trusted. */
export interface SentRefs {
  /** The commit that is checked out; null if there is none. */
  tip: string | null;
  branches: readonly { name: string; id: string }[];
}

/** A pack that is being sent. */
export interface SentPack extends AsyncDisposable {
  readonly bytes: AsyncIterable<Uint8Array>;
}

const ASK_MS = 60_000;
const SEND_MS = 10 * 60_000;
const ANSWER_MAX_BYTES = 1024 * 1024;
const KNOWN_MAX = 20_000;
/**
 * This git runs in the sandbox. The agent may have changed every other setting of it, which harms nobody but
 * the sandbox.
 */
const GIT = ["git", "--no-pager", "-c", "safe.directory=*", "-c", "core.fsmonitor=false"];
const NOT_FOUND = 127;

/** Error: `branch.refused` if git in the sandbox gives no proper answer. */
export async function readSentRefs(context: CommandContext, workspace: string): Promise<SentRefs> {
  const head = await ask(context, { workspace, args: ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"] });
  if (head.exitCode === NOT_FOUND)
    throw refused("the sandbox's image has no git", "use an image with git, such as brig/base");
  const text = head.stdout.trim();
  const tip = head.exitCode === 0 && /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(text) ? text : null;
  const notMerged = tip === null ? [] : [`--no-merged=${tip}`];
  const listed = await ask(context, {
    workspace,
    args: ["for-each-ref", ...notMerged, "--format=%(objectname) %(refname:short)", "refs/heads"],
  });
  if (listed.exitCode !== 0)
    throw refused(
      `git in the sandbox cannot read its copy of the repository: ${lastLine(listed.stderr)}`,
      "the commits of this session cannot be taken; the repository of this machine is unchanged",
    );
  const branches = listed.stdout.split("\n").flatMap((line) => {
    const [, id, name] = /^([0-9a-f]{40}|[0-9a-f]{64}) (.{1,200})$/.exec(line) ?? [];
    return id === undefined || name === undefined ? [] : [{ id, name }];
  });
  return { tip, branches };
}

/**
 * Has git in the sandbox send the tip and its history, without what can be reached from the `known` commits.
 */
export async function sendPack(
  context: CommandContext,
  { workspace, tip, known }: { workspace: string; tip: string; known: readonly string[] },
): Promise<SentPack> {
  const candidates = [...new Set(known)].slice(0, KNOWN_MAX);
  const there = await ask(context, {
    workspace,
    args: ["cat-file", "--batch-check=%(objectname) %(objecttype)"],
    input: candidates.map((id) => `${id}\n`).join(""),
  });
  const common = there.stdout
    .split("\n")
    .flatMap((line) => /^([0-9a-f]+) (?:commit|tag)$/.exec(line)?.[1] ?? [])
    .filter((id) => candidates.includes(id));
  const stopping = new AbortController();
  const program = new RunningProcess(
    context,
    [...GIT, "pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "-q"],
    { cwd: workspace, timeoutMs: SEND_MS, stdin: "pipe", signal: stopping.signal },
  );
  const exit = program.exit.catch(() => null);
  program.stderr?.resume();
  program.stdin?.on("error", () => undefined);
  program.stdin?.end([tip, ...common.map((id) => `^${id}`), ""].join("\n"));
  return {
    bytes: program.stdout,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await exit;
    },
  };
}

async function ask(
  context: CommandContext,
  { workspace, args, input }: { workspace: string; args: readonly string[]; input?: string },
): Promise<ExecResult<string>> {
  const result = await exec(context, [...GIT, ...args], {
    cwd: workspace,
    timeoutMs: ASK_MS,
    stdin: input,
    maxOutputBytes: ANSWER_MAX_BYTES * (input === undefined ? 1 : 2),
  });
  if (result.timedOut) throw refused("git in the sandbox did not answer in time");
  return result as ExecResult<string>;
}

function lastLine(text: string): string {
  return JSON.stringify(text.trim().split("\n").at(-1)?.slice(0, 300) ?? "");
}
