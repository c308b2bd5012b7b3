import { isBrigError } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { ReceiptFlag } from "../channel/protocol.js";
import { run } from "../files/file-request.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { CommandContext } from "../process/start-command.js";
import { parseReceipt } from "./parse-receipt.js";
import { emptyReceipt, type Receipt } from "./receipt.js";

/** How long the runner looks: about 200 000 files on a busy machine. */
const LOOK_MS = 3000;
/** How long it may take in all, with ending what still runs. */
const LIMIT_MS = 10_000;

/**
 * Ends every command and has the runner look through what the sandbox could write of the host, for files made
 * or changed since its start. Inside, since the host opens nothing where an agent was at work. Never throws:
 * what could not be looked at is told in the receipt.
 */
export async function makeReceipt(context: CommandContext, plan: SandboxPlan): Promise<Receipt> {
  const roots = plan.mounts.filter(
    ({ kind, access }) => access === "rw" && (kind === "workspace" || kind === "writable-root"),
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
  const answer = run(context, {
    operation: "receipt",
    path: roots.join("\n"),
    second: plan.mounts
      .filter(({ kind }) => kind === "protected")
      .map(({ path }) => path)
      .join("\n"),
    flags: ReceiptFlag.strips,
    mode: LOOK_MS,
    offsetBytes: ownerOfFiles(plan),
    onOutput: (data) => void pieces.push(Buffer.from(data)),
  });
  const { result } = await beforeAbort(answer, limit.signal);
  return parseReceipt(Buffer.concat(pieces), result, roots);
}

/** Whose files are expected: root of a container is not the user, unless the user is root. */
function ownerOfFiles({ user, capabilities }: SandboxPlan): number {
  return capabilities === "none" ? user.uid : (process.getuid?.() ?? user.uid);
}
