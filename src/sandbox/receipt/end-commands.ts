import { basename, join } from "node:path";
import { type BrigError, isBrigError } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { OnCopied } from "../changes/copied-changes.js";
import { protocolError } from "../channel/frames.js";
import {
  RECEIPT_COUNT_BYTES,
  RECEIPT_DIGEST_AT,
  RECEIPT_RECORD_BYTES,
  RECEIPT_RECORDS_MAX,
  RECEIPT_RESULT_BYTES,
  ReceiptEnd,
  ReceiptFlag,
  ReceiptReason,
} from "../channel/protocol.js";
import { run } from "../files/file-request.js";
import { listNames, readSmallFile, toBytePath } from "../git/byte-paths.js";
import type { OpenedSandbox } from "../open-sandbox.js";
import { isBelow } from "../plan/paths.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { CommandContext } from "../process/command.js";
import { disarmRepositories } from "./disarm-repositories.js";
import { obeyedNames } from "./obeyed-names.js";
import {
  type BranchArrival,
  emptyReceipt,
  type Finding,
  type FindingCount,
  type FindingReason,
  type KeptChanges,
  type Receipt,
} from "./receipt.js";

interface EndRequest {
  context: CommandContext;
  /** Whether any call was made. */
  hasRun: boolean;
  /** The error with which later calls fail. */
  closed: BrigError;
  onCopied?: OnCopied | undefined;
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

async function keepChanges(
  opened: OpenedSandbox,
  { hasRun, onCopied = opened.options.onCopied }: EndRequest,
): Promise<KeptChanges | null> {
  const { tree, isKept, options } = opened;
  if (tree === null || isKept || !hasRun || options.keepsChanges !== true) return null;
  try {
    return await (await import("../changes/sandbox-changes.js")).keepChanges(opened, { onCopied });
  } catch (error) {
    // A command must not be able to keep its own container by making too much to be kept.
    const { rescueChanges } = await import("../changes/rescue-changes.js");
    opened.warn(await rescueChanges(opened, error));
    return null;
  }
}

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

const HOOK_MAX_BYTES = 64 * 1024;

/** Marks of the hooks that these programs install, by the name that the list of obeyed names has for them. */
const MARKS: Readonly<Record<string, RegExp>> = {
  lefthook: /lefthook/i,
  "pre-commit": /pre-commit\.com|pre_commit|hook-impl/,
  prek: /\bprek\b/,
  Overcommit: /overcommit/i,
  "simple-git-hooks": /simple.git.hooks/i,
  CaptainHook: /captainhook/i,
  GrumPHP: /grumphp/i,
  "rusty-hook": /rusty-hook/,
  hk: /\bhk run\b/,
};

/**
 * Says of files by which hooks are configured that git runs them from now on, where such hooks are installed. The hooks
 * themselves are protected; what they run is a file like any other.
 */
export function markInstalled(
  findings: readonly Finding[],
  { mounts }: Pick<SandboxPlan, "mounts">,
): Finding[] {
  if (!findings.some(({ obeyedBy }) => managerIn(obeyedBy) !== null)) return [...findings];
  const installed = new Set(
    mounts
      .filter(({ kind, source }) => (kind === "protected" || kind === "repository") && source === undefined)
      .flatMap(({ path }) => managersIn(join(path, "hooks"))),
  );
  return findings.map((finding) => {
    const manager = managerIn(finding.obeyedBy);
    if (manager === null || !installed.has(manager)) return finding;
    return {
      ...finding,
      obeyedBy: `${manager}, whose hooks are installed: your next git commit or push runs it`,
    };
  });
}

function managerIn(obeyedBy: string | undefined): string | null {
  const name = /^(.+), as hooks of git$/.exec(obeyedBy ?? "")?.[1];
  return name !== undefined && Object.hasOwn(MARKS, name) ? name : null;
}

function managersIn(directory: string): string[] {
  const texts = hookNames(directory).map((name) => textOf(`${toBytePath(directory)}/${name}`));
  return Object.keys(MARKS).filter((manager) => texts.some((text) => MARKS[manager]?.test(text)));
}

function hookNames(directory: string): string[] {
  try {
    return listNames(toBytePath(directory))
      .map(({ name }) => name)
      .filter((name) => !name.endsWith(".sample"));
  } catch {
    return [];
  }
}

/** Empty for what is no small regular file. */
function textOf(path: string): string {
  try {
    const bytes = readSmallFile(path, HOOK_MAX_BYTES);
    return bytes === null || typeof bytes === "string" ? "" : bytes.toString("latin1");
  } catch {
    return "";
  }
}

const REASONS: readonly (readonly [number, FindingReason])[] = [
  [ReceiptReason.runs, "runs"],
  [ReceiptReason.setid, "setuid"],
  [ReceiptReason.device, "device"],
  [ReceiptReason.capabilities, "capabilities"],
  [ReceiptReason.foreign, "owner"],
  [ReceiptReason.repository, "repository"],
];
const ENDS: ReadonlyMap<number, Receipt["incomplete"]> = new Map([
  [ReceiptEnd.finished, null],
  [ReceiptEnd.noTime, "time"],
  [ReceiptEnd.closed, "closed"],
  [ReceiptEnd.noStream, "failed"],
]);

/** Parses the runner's records, as PROTOCOL.md defines them. Error: `protocol.invalid`. */
export function parseReceipt(records: Buffer, result: Buffer, roots: readonly string[]): Receipt {
  const isWhole = (result.length - RECEIPT_RESULT_BYTES) % RECEIPT_COUNT_BYTES === 0;
  const hasEnd = isWhole && result.length >= RECEIPT_RESULT_BYTES;
  const incomplete = hasEnd ? ENDS.get(result.readUInt32LE(12)) : undefined;
  if (incomplete === undefined) throw protocolError("a receipt without a proper end");
  const findings: Finding[] = [];
  for (let at = 0; at < records.length; ) {
    const pathAt = at + RECEIPT_RECORD_BYTES;
    const end = pathAt <= records.length ? pathAt + records.readUInt16LE(at + 2) : Number.POSITIVE_INFINITY;
    if (end > records.length || findings.length >= RECEIPT_RECORDS_MAX)
      throw protocolError("a receipt record that is cut off, or one too many");
    findings.push(parseFinding(records.subarray(at, end), roots));
    at = end;
  }
  const counts = parseCounts(result.subarray(RECEIPT_RESULT_BYTES));
  return {
    findings,
    omitted: result.readUInt32LE(8),
    ...(counts.length > 0 && { counts }),
    incomplete,
  };
}

/** The runner's kinds of findings: those with special rights, repositories, one for each name, and files of others. */
const KINDS: readonly string[] = ["setuid", "repository", ...obeyedNames.map(([name]) => name), "owner"];

function parseCounts(counts: Buffer): FindingCount[] {
  return Array.from({ length: counts.length / RECEIPT_COUNT_BYTES }, (_, at) => {
    const name = KINDS[counts.readUInt32LE(at * RECEIPT_COUNT_BYTES)];
    if (name === undefined) throw protocolError("a receipt counts what nobody has asked for");
    return { name, count: counts.readUInt32LE(at * RECEIPT_COUNT_BYTES + 4) };
  });
}

function parseFinding(record: Buffer, roots: readonly string[]): Finding {
  const flags = record.readUInt16LE(0);
  const path = record.toString("utf8", RECEIPT_RECORD_BYTES);
  if (!roots.some((root) => isBelow(path, root))) throw protocolError("a receipt for another directory");
  const obeyedBy = obeyedNames[record.readUInt32LE(12) - 1]?.[1];
  const isHashed = (flags & ReceiptReason.hashed) !== 0;
  return {
    path,
    reasons: REASONS.flatMap(([bit, reason]) => ((flags & bit) === 0 ? [] : [reason])),
    ...(obeyedBy !== undefined && { obeyedBy }),
    mode: record.readUInt32LE(4) & 0o7777,
    uid: record.readUInt32LE(8),
    sizeBytes: Number(record.readBigUInt64LE(16)),
    sha256: isHashed ? record.toString("hex", RECEIPT_DIGEST_AT, RECEIPT_RECORD_BYTES) : null,
    isNeutralised: (flags & ReceiptReason.stripped) !== 0,
  };
}
