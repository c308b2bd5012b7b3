import type { BrigError } from "../../errors.js";
import type { OpenedSandbox } from "../open-sandbox.js";
import type { CommandContext } from "../process/start-command.js";
import { makeReceipt } from "./make-receipt.js";
import { type BranchArrival, emptyReceipt, type KeptChanges, type Receipt } from "./receipt.js";

interface EndRequest {
  context: CommandContext;
  /** Whether any call was made. */
  hasRun: boolean;
  /** The error with which later calls fail. */
  closed: BrigError;
}

/**
 * Ends every command of a sandbox, after its commits were brought to the host, and keeps what was changed in a
 * copy-on-write workspace. Never throws.
 */
export async function endCommands(opened: OpenedSandbox, request: EndRequest): Promise<Receipt> {
  const branch = await bringCommits(opened, request);
  const receipt = await receiptOf(opened, request);
  const changes = await keepChanges(opened, request);
  return { ...receipt, ...(branch && { branch }), ...(changes && { changes }) };
}

async function bringCommits(
  { branch }: OpenedSandbox,
  { hasRun, context }: EndRequest,
): Promise<BranchArrival | null> {
  if (branch === null) return null;
  // Data that git sends have to arrive unchanged.
  return hasRun
    ? await branch.arrive({ ...context, mask: undefined })
    : { kind: "nothing-new", notTaken: [] };
}

async function receiptOf(
  { link, plan, isKept }: OpenedSandbox,
  { hasRun, context, closed }: EndRequest,
): Promise<Receipt> {
  if (isKept) return emptyReceipt("kept");
  // No call was made, so nothing has run.
  if (!hasRun) return emptyReceipt();
  link.retire(closed);
  return await makeReceipt(context, plan);
}

async function keepChanges(opened: OpenedSandbox, { hasRun }: EndRequest): Promise<KeptChanges | null> {
  const { tree, isKept, options } = opened;
  if (tree === null || isKept || !hasRun || options.keepsChanges !== true) return null;
  try {
    return await (await import("../changes/sandbox-changes.js")).keepChanges(opened);
  } catch (error) {
    // A command must not be able to keep its own container by making too much to be kept.
    const { rescueChanges } = await import("../changes/rescue-changes.js");
    opened.warn(await rescueChanges(opened, error));
    return null;
  }
}
