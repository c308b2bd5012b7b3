import { basename } from "node:path";
import { isBrigError } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { ReceiptFlag } from "../channel/protocol.js";
import { run } from "../files/file-request.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { CommandContext } from "../process/start-command.js";
import { disarmRepositories } from "./disarm-repositories.js";
import { markInstalled } from "./installed-hooks.js";
import { obeyedNames } from "./obeyed/obeyed-names.js";
import { parseReceipt } from "./parse-receipt.js";
import { emptyReceipt, type Receipt } from "./receipt.js";

/** Enough for about 200 000 files on a busy machine. */
const SEARCH_MS = 3000;
/** The limit for all of it, including the end of processes that still run. */
const LIMIT_MS = 10_000;

/**
 * Ends every command, and has the runner search what the sandbox could write on the host for files created or
 * changed since its start. The runner does this inside, because the host opens no file that an agent may have
 * written. Never throws: `incomplete` in the receipt says what went wrong.
 */
export async function makeReceipt(context: CommandContext, plan: SandboxPlan): Promise<Receipt> {
  const roots = plan.mounts.filter(
    ({ kind, access, source }) =>
      access === "rw" && source === undefined && (kind === "workspace" || kind === "writable-root"),
  );
  if (roots.length === 0) return emptyReceipt();
  const outermost = roots
    .map(({ path }) => path)
    .filter((path, _, all) => !all.some((other) => path.startsWith(`${other}/`)));
  try {
    return await ask(context, { plan, roots: outermost });
  } catch (error) {
    return emptyReceipt(isBrigError(error, "sandbox.gone") ? "gone" : "failed");
  }
}

async function ask(
  context: CommandContext,
  { plan, roots }: { plan: SandboxPlan; roots: readonly string[] },
): Promise<Receipt> {
  using limit = new TimeLimit(LIMIT_MS);
  const pieces: Buffer[] = [];
  const last: CommandContext = { ...context, isLast: true };
  const answer = run(last, {
    operation: "receipt",
    path: roots.join("\n"),
    second: searchText(plan),
    flags: ReceiptFlag.strips,
    mode: SEARCH_MS,
    offsetBytes: ownerOfFiles(plan),
    onOutput: (data) => void pieces.push(Buffer.from(data)),
  });
  const { result } = await beforeAbort(answer, limit.signal);
  const parsed = parseReceipt(Buffer.concat(pieces), result, roots);
  const receipt = { ...parsed, findings: markInstalled(parsed.findings, plan) };
  if (!protectsRepositories(plan)) return receipt;
  const { signal } = limit;
  const disarming = disarmRepositories(receipt.findings, { context: last, roots, signal });
  // If disarming fails, the receipt is still true.
  const findings = await beforeAbort(disarming, signal).catch(() => receipt.findings);
  return { ...receipt, findings };
}

/** Whether the repositories that were there at the start are protected, so that a receipt can only list new ones. */
function protectsRepositories({ mounts }: SandboxPlan): boolean {
  return mounts.some(
    ({ kind, path, source }) => basename(path) === ".git" && (kind === "protected" || source !== undefined),
  );
}

/** The paths to leave out, the names to look for, and the directories that were there before, with empty lines between them. */
function searchText({ mounts, knownDirectories }: SandboxPlan): string {
  const leftOut = mounts.filter(({ kind, source }) => kind === "protected" || source !== undefined);
  const known = knownDirectories.map(({ path, ino }) => `${ino} ${path}`);
  const parts = [leftOut.map(({ path }) => path), obeyedNames.map(([name]) => name), known];
  return parts.map((lines) => lines.filter((line) => !line.includes("\n")).join("\n")).join("\n\n");
}

/** The expected owner of new files. Root inside the container is not expected, unless brig runs as root. */
function ownerOfFiles({ user, capabilities }: SandboxPlan): number {
  return capabilities === "none" ? user.uid : (process.getuid?.() ?? user.uid);
}
