import { BrigError } from "../../errors.js";
import type { CommandContext } from "../process/start-command.js";
import type { BranchArrival } from "../receipt/receipt.js";
import { receiveCommits, requireFreeRef } from "./arrival.js";
import { findGit } from "./find-git.js";
import { type HostRepository, leftLock, readHostRepository, requireOwnObjects } from "./host-repository.js";
import type { QuarantinePlace } from "./quarantine.js";
import { readSentRefs, sendPack } from "./sent-commits.js";

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
  /** The branch's name without `refs/heads/`; undefined before `prepare`. */
  #name: string | undefined;
  #last: Extract<BranchArrival, { kind: "arrived" }> | null = null;
  #arriving: Promise<unknown> = Promise.resolve();

  constructor(options: SessionBranchOptions) {
    this.hasOwnTree = options.hasOwnTree;
    this.#options = options;
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
