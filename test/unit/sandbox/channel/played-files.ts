import { FILE_HEAD_BYTES, FileOperation, FrameType } from "../../../../src/sandbox/channel/protocol.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import { exitPayload, type FakeRunner, uint32 } from "./fake-runner.js";
import { playedLink } from "./played-link.js";

type Operation = keyof typeof FileOperation;

/** A file request as it reaches the runner. */
export interface PlayedRequest {
  operation: Operation;
  path: Buffer;
  second: Buffer;
  flags: number;
  mode: number;
  offset: bigint;
  length: bigint;
  /** All input, for a request that has any. */
  input: Buffer;
}

/** What the runner says to it. */
export interface PlayedAnswer {
  /** 4 for a file operation, which is the default. */
  kind?: number;
  errno?: number;
  result?: Buffer;
  output?: readonly Buffer[];
  /** Comes between the output and the end. */
  until?: Promise<unknown>;
  /** It does not end before it is to be ended, and then with EINTR. */
  waitsForKill?: boolean;
}

export interface PlayedFiles {
  context: CommandContext;
  runner: FakeRunner;
  /** All requests that have come with all their input, in order. */
  requests: PlayedRequest[];
  /** How often a request was to be ended. */
  kills: number;
}

const EINTR = 4;
const names: ReadonlyMap<number, Operation> = new Map(
  Object.entries(FileOperation).map(([name, number]) => [number, name as Operation]),
);

type Answer = (request: PlayedRequest) => PlayedAnswer | Promise<PlayedAnswer>;

/** A context for file requests, whose runner gives the answers of the test. */
export async function playedFiles(answer: Answer): Promise<PlayedFiles> {
  const { runner, link } = await playedLink();
  const context: CommandContext = { link, cwd: "/", env: {}, onStuck: () => undefined };
  return Object.assign(answerFiles(runner, answer), { context, runner });
}

/** From now on the runner gives these answers to file requests. */
export function answerFiles(runner: FakeRunner, answer: Answer): Pick<PlayedFiles, "requests" | "kills"> {
  const played = { requests: [] as PlayedRequest[], kills: 0 };
  const open = new Map<number, { request: PlayedRequest; pieces: Buffer[] }>();
  const waiting = new Set<number>();
  const exit = (channel: number, { kind = 4, errno = 0, result = Buffer.alloc(0) }: PlayedAnswer) => {
    const head = exitPayload(0, kind);
    head.writeUInt32LE(errno, 4);
    runner.send(FrameType.exit, channel, Buffer.concat([head, result]));
  };
  const take = async (channel: number, request: PlayedRequest) => {
    played.requests.push(request);
    const said = await answer(request);
    for (const piece of said.output ?? []) runner.send(FrameType.stdout, channel, piece);
    await said.until;
    if (said.waitsForKill === true) return void waiting.add(channel);
    exit(channel, said);
  };
  runner.onFrame = ({ type, channel, payload }) => {
    if (type === FrameType.file) {
      const request = parseRequest(payload);
      if (hasInput(request)) open.set(channel, { request, pieces: [] });
      else void take(channel, request);
    } else if (type === FrameType.input) {
      const { request, pieces } = open.get(channel) ?? { request: undefined, pieces: [] };
      if (request === undefined) return;
      if (payload.length > 0) {
        pieces.push(Buffer.from(payload));
        runner.send(FrameType.creditFromRunner, channel, uint32(payload.length));
        return;
      }
      open.delete(channel);
      void take(channel, { ...request, input: Buffer.concat(pieces) });
    } else if (type === FrameType.kill) {
      played.kills++;
      if (waiting.delete(channel) || open.delete(channel)) exit(channel, { errno: EINTR });
    }
  };
  return played;
}

/** Whether input follows, up to an empty piece. */
function hasInput({ operation, flags }: PlayedRequest): boolean {
  return operation === "commit" || (operation === "write" && (flags & 2) === 0);
}

export function parseRequest(payload: Buffer): PlayedRequest {
  const pathEnd = FILE_HEAD_BYTES + 4 + payload.readUInt32LE(FILE_HEAD_BYTES);
  const secondEnd = pathEnd + 4 + payload.readUInt32LE(pathEnd);
  return {
    operation: names.get(payload.readUInt8(0)) ?? "read",
    flags: payload.readUInt8(1),
    mode: payload.readUInt32LE(4),
    offset: payload.readBigUInt64LE(8),
    length: payload.readBigUInt64LE(16),
    path: Buffer.from(payload.subarray(FILE_HEAD_BYTES + 4, pathEnd)),
    second: Buffer.from(payload.subarray(pathEnd + 4, secondEnd)),
    input: Buffer.alloc(0),
  };
}

/** The result of a read that began where it was to begin. */
export function readResult(start: number | bigint = 0, data: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(BigInt(start), 8);
  return Buffer.concat([head, data]);
}

/** A part of a file as the runner writes and reads it; without bytes, the end of the file. */
export function extent(offset: number, data: Uint8Array | string = ""): Buffer {
  const head = Buffer.alloc(12);
  const bytes = Buffer.from(data as string);
  head.writeBigUInt64LE(BigInt(offset), 0);
  head.writeUInt32LE(bytes.length, 8);
  return Buffer.concat([head, bytes]);
}

/** What a file gets by these extents, with its holes. */
export function contentOf(extents: Buffer): Buffer {
  const pieces: { offset: number; data: Buffer }[] = [];
  for (let at = 0; at < extents.length; ) {
    const end = at + 12 + extents.readUInt32LE(at + 8);
    pieces.push({ offset: Number(extents.readBigUInt64LE(at)), data: extents.subarray(at + 12, end) });
    at = end;
  }
  const content = Buffer.alloc(pieces.at(-1)?.offset ?? 0);
  for (const { offset, data } of pieces) data.copy(content, offset);
  return content;
}

export interface PlayedStat {
  type: number;
  mode?: number;
  uid?: number;
  gid?: number;
  size?: bigint;
  modifiedNs?: bigint;
  dev?: bigint;
  ino?: bigint;
  target?: Uint8Array;
}

/** The result of a stat. */
export function statResult(stat: PlayedStat): Buffer {
  const target = Buffer.from(stat.target ?? []);
  const head = Buffer.alloc(52);
  head.writeUInt8(stat.type, 0);
  head.writeUInt32LE(stat.mode ?? 0o644, 4);
  head.writeUInt32LE(stat.uid ?? 0, 8);
  head.writeUInt32LE(stat.gid ?? 0, 12);
  head.writeBigUInt64LE(stat.size ?? 0n, 16);
  head.writeBigInt64LE(stat.modifiedNs ?? 0n, 24);
  head.writeBigUInt64LE(stat.dev ?? 0n, 32);
  head.writeBigUInt64LE(stat.ino ?? 0n, 40);
  head.writeUInt32LE(target.length, 48);
  return Buffer.concat([head, target]);
}

/** An entry of a list. */
export function listEntry(type: number, name: Uint8Array | string): Buffer {
  const bytes = Buffer.from(name as string);
  const head = Buffer.alloc(4);
  head.writeUInt8(type, 0);
  head.writeUInt16LE(bytes.length, 2);
  return Buffer.concat([head, bytes]);
}

/** The result of a commit or a recovery. */
export function commitResult({
  flags = 0,
  done = 0,
  failed = 0xffff_ffff,
  count,
  conflicts = [],
}: {
  flags?: number;
  done?: number;
  failed?: number;
  count?: number;
  conflicts?: readonly (readonly [record: number, reason: number])[];
} = {}): Buffer {
  const head = [flags, done, failed, count ?? conflicts.length];
  return Buffer.concat([...head, ...conflicts.flat()].map(uint32));
}

/** The result of a scan. */
export function scanResult({
  startedNs = 100n,
  count = 0,
  leftOut = 0n,
  notEntered = 0n,
  sha256 = "00".repeat(32),
}: {
  startedNs?: bigint;
  count?: number | bigint;
  leftOut?: bigint;
  notEntered?: bigint;
  sha256?: string;
} = {}): Buffer {
  const head = Buffer.alloc(32);
  head.writeBigInt64LE(startedNs, 0);
  head.writeBigUInt64LE(BigInt(count), 8);
  head.writeBigUInt64LE(leftOut, 16);
  head.writeBigUInt64LE(notEntered, 24);
  return Buffer.concat([head, Buffer.from(sha256, "hex")]);
}
