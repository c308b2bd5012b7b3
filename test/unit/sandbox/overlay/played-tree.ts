import { EntryType } from "../../../../src/sandbox/channel/protocol.js";
import type { TreeContainer, WorkspaceTree } from "../../../../src/sandbox/overlay/workspace-tree.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import type { BaseState, PresentState } from "../../../../src/sandbox/tree/tree-changes.js";
import { changeRecord, type RecordState } from "../../../support/change-records.js";
import {
  commitResult,
  contentOf,
  extent,
  listEntry,
  type PlayedAnswer,
  type PlayedFiles,
  type PlayedRequest,
  type PlayedStat,
  playedFiles,
  readResult,
  scanResult,
  statResult,
} from "../channel/played-files.js";

const [ENOENT, EFBIG] = [2, 27];

/** What one scan reports. */
export interface PlayedScan {
  records: readonly Buffer[];
  startedNs?: bigint;
  leftOut?: bigint;
  sha256?: string;
  notEntered?: bigint;
}

/** A copy-on-write workspace whose runner says of it what the test has prepared. Paths are those inside, as latin1. */
export interface PlayedTree extends WorkspaceTree {
  leftOut: string[];
  readonly files: PlayedFiles;
  readonly context: CommandContext;
  /** One after the other; the last one is repeated. */
  scans: PlayedScan[];
  readonly contents: Map<string, string | Buffer>;
  readonly stats: Map<string, PlayedStat>;
  readonly lists: Map<string, readonly Buffer[]>;
  /** Goes before everything else; null for the usual answer. */
  answer: (request: PlayedRequest) => PlayedAnswer | Promise<PlayedAnswer> | null;
  appliers: { opened: number; closed: number };
  /** Operations and paths, in order. The name of a stage is "STAGE". */
  done(): string[];
  /** The records of all commits. */
  committed(): CommittedRecord[];
  /** The contents that were staged, by their numbers, over all commits. */
  staged(): Record<string, string>;
}

export async function playedTree({ workspace = "/repo" }: { workspace?: string } = {}): Promise<PlayedTree> {
  const files = await playedFiles(async (request) => (await tree.answer(request)) ?? usual(tree, request));
  const tree: PlayedTree = {
    ...{ id: "tree", workspace, startedAt: 50n, identity: { dev: "1", ino: "2" }, leftOut: [], files },
    context: files.context,
    scans: [{ records: [] }],
    contents: new Map(),
    stats: new Map(),
    lists: new Map(),
    answer: () => null,
    appliers: { opened: 0, closed: 0 },
    keeper: async () => files.context,
    openApplier: async (): Promise<TreeContainer> => {
      tree.appliers.opened++;
      return { context: files.context, close: async () => void tree.appliers.closed++ };
    },
    done: () => files.requests.map(({ operation, path }) => `${operation} ${withoutStage(path)}`),
    committed: () => files.requests.filter(({ operation }) => operation === "commit").flatMap(recordsIn),
    staged: () =>
      Object.fromEntries(
        files.requests
          .filter(({ operation, path }) => operation === "write" && path.includes(".brig-stage-"))
          .map(({ path, flags, second, input }) => [
            path.toString("latin1").split("/").at(-1),
            (flags & 2 ? second : flags & 4 ? contentOf(input) : input).toString("latin1"),
          ]),
      ),
  };
  return tree;
}

function withoutStage(path: Buffer): string {
  return path.toString("latin1").replace(/\.brig-stage-[0-9a-f]{16}/, "STAGE");
}

function usual(tree: PlayedTree, request: PlayedRequest): PlayedAnswer {
  const path = request.path.toString("latin1");
  switch (request.operation) {
    case "changes": {
      const [scan] = tree.scans;
      if (tree.scans.length > 1) tree.scans.shift();
      if (scan === undefined) return { errno: ENOENT };
      return { output: scan.records, result: scanResult({ ...scan, count: scan.records.length }) };
    }
    case "read":
      return readAnswer(tree.contents.get(path), request);
    case "stat": {
      const stat = tree.stats.get(path);
      return stat === undefined ? { errno: ENOENT } : { result: statResult(stat) };
    }
    case "list": {
      const entries = tree.lists.get(path);
      return entries === undefined ? { errno: ENOENT } : { result: Buffer.concat(entries) };
    }
    case "commit":
    case "recover":
      return { result: commitResult() };
    default:
      return {};
  }
}

function readAnswer(
  content: string | Buffer | undefined,
  { flags, offset, length }: PlayedRequest,
): PlayedAnswer {
  if (content === undefined) return { errno: ENOENT };
  const whole = Buffer.from(content as string);
  const data = whole.subarray(Number(offset), Number(offset + length));
  if ((flags & 1) !== 0 && whole.length > Number(offset + length)) return { errno: EFBIG };
  if ((flags & 2) !== 0) return { result: readResult(offset, data) };
  const hasExtents = (flags & 8) !== 0;
  const output = [];
  for (let at = 0; at < data.length; at += 60_000) {
    const piece = data.subarray(at, at + 60_000);
    output.push(hasExtents ? extent(at, piece) : piece);
  }
  if (hasExtents) output.push(extent(data.length));
  return { output, result: readResult(offset) };
}

interface CommittedRecord {
  action: string;
  path: string;
  expects: string;
  mode: number;
  owner: string | null;
  modifiedNs: bigint | null;
  content: number;
  target: string;
}

const actions = ["", "put", "mkdir", "symlink", "remove", "check"];
const expectations = ["any", "absent", "state", "older"];
const types = Object.keys(EntryType);

/** What a request for a commit or a copy has as its records. */
export function recordsIn({ operation, input, second }: PlayedRequest): CommittedRecord[] {
  const bytes = operation === "copy" ? second.subarray(second.indexOf(0) + 1) : input;
  const found: CommittedRecord[] = [];
  for (let at = 0; at < bytes.length; ) {
    const pathEnd = at + 72 + bytes.readUInt32LE(at + 20);
    const end = pathEnd + bytes.readUInt32LE(at + 24);
    const [uid, gid] = [bytes.readUInt32LE(at + 12), bytes.readUInt32LE(at + 16)];
    const modifiedNs = bytes.readBigInt64LE(at + 32);
    found.push({
      action: actions[bytes.readUInt8(at)] ?? "?",
      path: bytes.toString("latin1", at + 72, pathEnd),
      expects: expectationAt(bytes, at),
      mode: bytes.readUInt32LE(at + 8),
      owner: uid === 0xffff_ffff ? null : `${uid}:${gid}`,
      modifiedNs: modifiedNs === -(1n << 63n) ? null : modifiedNs,
      content: bytes.readUInt32LE(at + 4),
      target: bytes.toString("latin1", pathEnd, end),
    });
    at = end;
  }
  return found;
}

/** For example "absent", "state file 7", which ends with the inode number, and "older directory 99", with a time. */
function expectationAt(bytes: Buffer, at: number): string {
  const kind = expectations[bytes.readUInt8(at + 1)] ?? "?";
  const type = types[bytes.readUInt8(at + 2)];
  if (kind === "state") return `${kind} ${type} ${bytes.readBigUInt64LE(at + 40)}`;
  return kind === "older" ? `${kind} ${type} ${bytes.readBigInt64LE(at + 64)}` : kind;
}

const file: RecordState = { type: 1, mode: 0o644, links: 1 };

/** Records of a scan. Without anything else, they are about a file of no bytes. */
export function added(path: string, now: Partial<RecordState> = {}): Buffer {
  return changeRecord({ change: 1, path, now: { ...file, ...now } });
}

export function modified(
  path: string,
  now: Partial<RecordState> = {},
  before: Partial<RecordState> = {},
): Buffer {
  return changeRecord({ change: 2, path, now: { ...file, ...now }, before: { ...file, ...before } });
}

export function deleted(path: string, before: Partial<RecordState> = {}): Buffer {
  return changeRecord({ change: 3, path, before: { ...file, ...before } });
}

export function same(
  path: string,
  now: Partial<RecordState> = {},
  before: Partial<RecordState> = {},
): Buffer {
  return changeRecord({ change: 4, path, now: { ...file, ...now }, before: { ...file, ...before } });
}

export const entry = listEntry;

/** The state of a file of no bytes, of mode 644, if nothing else is said. */
export function presentState(given: Partial<PresentState> = {}): PresentState {
  const state = { type: "file", mode: 0o644, sizeBytes: 0, modifiedNs: 0n, changedNs: 0n, ino: 0n } as const;
  return { ...state, uid: 0, gid: 0, links: 1, rdev: 0n, linkTarget: null, ...given };
}

export function baseState(given: Partial<BaseState> = {}): BaseState {
  const state = { type: "file", mode: 0o644, sizeBytes: 0, modifiedNs: 0n, changedNs: 0n, ino: 0n } as const;
  return { ...state, dev: 0n, ...given };
}
