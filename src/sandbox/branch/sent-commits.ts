import { RunningProcess } from "../process/process.js";
import { exec } from "../process/run-to-end.js";
import type { CommandContext } from "../process/start-command.js";
import type { ExecResult } from "../sandbox-types.js";
import { refused } from "./refused.js";

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
