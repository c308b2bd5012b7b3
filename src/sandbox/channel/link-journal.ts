import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { makeDirectorySync } from "../../lib/files/make-directory.js";
import { encodeFrame, type Frame } from "./frames.js";
import { FrameType, HEADER_BYTES } from "./protocol.js";

/** What a link has to know to go on where another one stopped. */
export interface LinkState {
  bootId: bigint;
  /** How many counted frames have come from the runner. */
  received: bigint;
  /** How many of the counted frames for the runner it had acknowledged, and those after them. */
  acknowledged: bigint;
  kept: Buffer[];
  lastChannel: number;
  /** The channels whose last frame has not come. */
  open: Map<number, ChannelTotals>;
}

/** What has passed on one channel, in bytes of payload. */
export interface ChannelTotals {
  /** The type of the request that opened it. */
  type: number;
  outputBytes: number;
  /** Credit for output, besides that of every channel. */
  outputCredit: number;
  inputBytes: number;
  /** Credit for input, besides that of every channel. */
  inputCredit: number;
}

/** What is left of a process that began before. */
export interface ChannelHistory {
  /** Null if its last frame has come. */
  totals: ChannelTotals | null;
  /** Its frames from the runner, in order, but for credit. */
  frames: { type: number; payload: Buffer }[];
  /** Bytes of output that are not among the frames any more. */
  lost: LostOutput;
}

/** In bytes. */
export interface LostOutput {
  stdout: number;
  stderr: number;
}

/** A journal as it was left. */
export interface RecoveredJournal {
  state: LinkState;
  /** By the names that they were noted with. */
  notes: Map<string, JournalNote>;
  /** What has passed on a channel, as far as the files go back. */
  historyOf(channel: number): ChannelHistory;
  files: { segments: Segment[]; lost: Map<number, LostOutput> };
}

/** A fact about one channel, which may have more to say. */
export interface JournalNote {
  channel: number;
}

interface Segment {
  number: number;
  bytes: number;
  /** How many of them are what the file begins with, however much that is. */
  headBytes: number;
}

const RecordKind = { checkpoint: 1, sent: 2, received: 3, note: 4, acknowledged: 5 } as const;
const RECORD_HEAD_BYTES = 5;
/** A record is at most as long as the largest frame, or as a checkpoint with all frames that a link may keep. */
const MAX_RECORD_BYTES = 64 * 1024 * 1024;

const SEGMENT_BYTES = 8 * 1024 * 1024;
const JOURNAL_BYTES = 64 * 1024 * 1024;

/**
 * What a link has sent and received, written to files before the frame is sent or acknowledged. If this process is killed, another
 * one can so go on with the runner: what it has not received is sent again, and what was not acknowledged comes again. The files
 * are written without waiting for the disk, since a machine that fails takes the container with it.
 *
 * When there are 64 MiB of it, the oldest 8 MiB go. Every file begins with all that is needed to go on.
 */
export class LinkJournal {
  readonly #directory: string;
  readonly #onFailure: (error: unknown) => void;
  readonly #notes: Map<string, JournalNote>;
  readonly #segments: Segment[];
  readonly #lost: Map<number, LostOutput>;
  readonly #open: Map<number, ChannelTotals>;
  #file: number | null = null;
  /** Set by the link that writes to it. */
  takeState: (() => Readonly<Omit<LinkState, "open" | "kept">> & { kept: readonly Buffer[] }) | undefined;

  /** `onFailure` is called once if a file cannot be written. Then there is no journal any more, and nobody can go on. */
  constructor(
    directory: string,
    { onFailure, recovered }: { onFailure(error: unknown): void; recovered?: RecoveredJournal | undefined },
  ) {
    this.#directory = directory;
    this.#onFailure = onFailure;
    this.#notes = recovered?.notes ?? new Map();
    this.#open = recovered?.state.open ?? new Map();
    this.#segments = recovered?.files.segments ?? [];
    this.#lost = recovered?.files.lost ?? new Map();
  }

  /** Begins a file, when the link knows with whom it speaks. */
  begin(): void {
    this.#attempt(() => {
      makeDirectorySync(this.#directory, { mode: 0o700 });
      this.#openSegment();
    });
  }

  /** Whether another process could go on from here. */
  get isWritten(): boolean {
    return this.#file !== null;
  }

  sent(frame: Buffer): void {
    if (this.#file === null) return;
    this.#append(RecordKind.sent, [frame]);
    countSent(this.#open, frame);
  }

  received(frame: Frame): void {
    if (this.#file === null) return;
    this.#append(RecordKind.received, [encodeFrame(frame.type, frame.channel, frame.payload)]);
    countReceived(this.#open, frame);
  }

  /** The runner has so many of the counted frames for it. Without that, every file would begin with all that was ever sent. */
  acknowledged(frames: bigint): void {
    const count = Buffer.alloc(8);
    count.writeBigUInt64LE(frames);
    this.#append(RecordKind.acknowledged, [count]);
  }

  /** Keeps a fact beside the frames. Null forgets it. */
  note(name: string, value: JournalNote | null): void {
    if (value === null) this.#notes.delete(name);
    else this.#notes.set(name, value);
    this.#append(RecordKind.note, [Buffer.from(JSON.stringify({ name, value }))]);
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #append(kind: number, parts: readonly Buffer[]): void {
    if (this.#file === null) return;
    this.#attempt(() => {
      const last = this.#segments.at(-1);
      if (last !== undefined && last.bytes - last.headBytes >= SEGMENT_BYTES) this.#openSegment();
      this.#write(kind, parts);
    });
  }

  #write(kind: number, parts: readonly Buffer[]): void {
    const head = Buffer.alloc(RECORD_HEAD_BYTES);
    head[0] = kind;
    head.writeUInt32LE(
      parts.reduce((sum, { length }) => sum + length, 0),
      1,
    );
    const record = Buffer.concat([head, ...parts]);
    for (let at = 0; at < record.length; ) at += writeSync(this.#file as number, record, at);
    const last = this.#segments.at(-1);
    if (last !== undefined) last.bytes += record.length;
  }

  #openSegment(): void {
    const number = (this.#segments.at(-1)?.number ?? 0) + 1;
    this.close();
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND;
    this.#file = openSync(this.#pathOf(number), flags | constants.O_NOFOLLOW, 0o600);
    const segment = { number, bytes: 0, headBytes: 0 };
    this.#segments.push(segment);
    const tooOld = this.#countTooOld();
    const state = this.takeState?.();
    if (state !== undefined)
      this.#write(RecordKind.checkpoint, [
        encodeCheckpoint({
          state: { ...state, kept: [...state.kept], open: this.#open },
          notes: this.#notes,
          lost: this.#lost,
          oldest: this.#segments[tooOld]?.number ?? number,
        }),
      ]);
    segment.headBytes = segment.bytes;
    // Not before a file says what was lost with them: this process may be killed in between.
    for (const { number } of this.#segments.splice(0, tooOld)) unlinkSync(this.#pathOf(number));
  }

  /** How many files have to go. What goes with them is added up, so that a reader knows how much of a command's output is lost. */
  #countTooOld(): number {
    let count = 0;
    let total = this.#segments.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { number, bytes } of this.#segments.slice(0, -1)) {
      if (total <= JOURNAL_BYTES) break;
      for (const { kind, payload } of recordsIn(readFileSync(this.#pathOf(number))).records) {
        if (kind !== RecordKind.received) continue;
        const { type, channel, bytes: length } = headOf(payload);
        if (!isOutput(type)) continue;
        const lost = this.#lost.get(channel) ?? { stdout: 0, stderr: 0 };
        lost[type === FrameType.stderr ? "stderr" : "stdout"] += length;
        this.#lost.set(channel, lost);
      }
      total -= bytes;
      count++;
    }
    // Of commands that nobody asks for any more, it is not worth knowing.
    const known = new Set([...this.#notes.values()].map(({ channel }) => channel));
    for (const channel of this.#lost.keys())
      if (!known.has(channel) && !this.#open.has(channel)) this.#lost.delete(channel);
    return count;
  }

  #pathOf(number: number): string {
    return join(this.#directory, fileName(number));
  }

  #attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.giveUp(error);
    }
  }

  /** Notes nothing more, and removes what is there. */
  giveUp(error: unknown): void {
    this.close();
    this.#forget();
    this.#onFailure(error);
  }

  /** A journal with a gap would let another process go on from a wrong place. */
  #forget(): void {
    for (const { number } of this.#segments) rmSync(this.#pathOf(number), { force: true });
    this.#segments.length = 0;
  }
}

/**
 * Reads the files that a link has left. Null if they do not say how to go on. A record that was not written whole is cut off: its frame was
 * not sent, or not acknowledged.
 */
export function recoverJournal(directory: string): RecoveredJournal | null {
  const read = segmentsIn(directory).map((segment) => ({
    segment,
    records: readSegment(directory, segment),
  }));
  const checkpoints = read.flatMap(({ records }) => records.filter(isCheckpoint));
  const last = checkpoints.at(-1);
  if (last === undefined) return null;
  const { lost, oldest } = decodeCheckpoint(last.payload);
  const frames = new Map<number, { type: number; payload: Buffer }[]>();
  const segments: Segment[] = [];
  let replay: Replay | null = null;
  for (const { segment, records } of read) {
    // Its output is counted as lost already.
    if (segment.number < oldest) {
      unlinkSync(join(directory, fileName(segment.number)));
      continue;
    }
    segments.push(segment);
    for (const record of records) {
      const { kind, payload } = record;
      if (isCheckpoint(record)) {
        replay = new Replay(decodeCheckpoint(payload));
        continue;
      }
      if (replay === null) return null;
      replay.take(kind, payload);
      if (kind !== RecordKind.received) continue;
      const { type, channel } = headOf(payload);
      if (!isOutput(type) && type !== FrameType.exit) continue;
      const own = frames.get(channel) ?? [];
      own.push({ type, payload: payload.subarray(HEADER_BYTES) });
      frames.set(channel, own);
    }
  }
  if (replay === null) return null;
  const { state, notes } = replay;
  return {
    state,
    notes,
    // A copy, to which the next journal adds the output of the files that it removes. Here that output has been read, and is not lost.
    files: { segments, lost: structuredClone(lost) },
    historyOf: (channel) => ({
      totals: state.open.get(channel) ?? null,
      frames: frames.get(channel) ?? [],
      lost: lost.get(channel) ?? { stdout: 0, stderr: 0 },
    }),
  };
}

/** The state of a link, brought forward record by record. */
class Replay {
  readonly state: LinkState;
  readonly notes: Map<string, JournalNote>;

  constructor({ state, notes }: Checkpoint) {
    this.state = state;
    this.notes = notes;
  }

  take(kind: number, payload: Buffer): void {
    if (kind === RecordKind.note) {
      const { name, value } = JSON.parse(payload.toString()) as { name: string; value: JournalNote | null };
      if (value === null) this.notes.delete(name);
      else this.notes.set(name, value);
    } else if (kind === RecordKind.sent) {
      this.state.kept.push(payload);
      countSent(this.state.open, payload);
      this.state.lastChannel = Math.max(this.state.lastChannel, headOf(payload).channel);
    } else if (kind === RecordKind.acknowledged) {
      const frames = payload.readBigUInt64LE();
      this.state.kept.splice(0, Number(frames - this.state.acknowledged));
      this.state.acknowledged = frames;
    } else {
      this.state.received++;
      countReceived(this.state.open, { ...headOf(payload), payload: payload.subarray(HEADER_BYTES) });
    }
  }
}

const requests: ReadonlySet<number> = new Set([
  FrameType.spawn,
  FrameType.file,
  FrameType.listen,
  FrameType.accept,
  FrameType.connect,
]);

/** Notes what a frame for the runner means for its channel. */
function countSent(open: Map<number, ChannelTotals>, frame: Buffer): void {
  const { type, channel, bytes } = headOf(frame);
  if (requests.has(type))
    open.set(channel, { type, outputBytes: 0, outputCredit: 0, inputBytes: 0, inputCredit: 0 });
  const totals = open.get(channel);
  if (totals === undefined) return;
  if (type === FrameType.input) totals.inputBytes += bytes;
  if (type === FrameType.credit) totals.outputCredit += frame.readUInt32LE(HEADER_BYTES);
}

/** Notes what a frame of the runner means for its channel. */
function countReceived(
  open: Map<number, ChannelTotals>,
  { type, channel, payload }: Pick<Frame, "type" | "channel" | "payload">,
): void {
  const totals = open.get(channel);
  if (totals === undefined) return;
  if (isOutput(type)) totals.outputBytes += payload.length;
  if (type === FrameType.creditFromRunner && payload.length === 4)
    totals.inputCredit += payload.readUInt32LE(0);
  if (type === FrameType.exit) open.delete(channel);
}

function isOutput(type: number): boolean {
  return type === FrameType.stdout || type === FrameType.stderr;
}

function headOf(frame: Buffer): { type: number; channel: number; bytes: number } {
  return {
    type: frame.readUInt32LE(4),
    channel: frame.readUInt32LE(8),
    bytes: frame.length - HEADER_BYTES,
  };
}

interface Checkpoint {
  state: LinkState;
  notes: Map<string, JournalNote>;
  /** Bytes of output by channel, of the files that were gone when it was written. */
  lost: Map<number, LostOutput>;
  /** The number of the oldest file that counts. An earlier one may be left of a process that was killed before it removed it. */
  oldest: number;
}

interface CheckpointText {
  bootId: string;
  received: string;
  acknowledged: string;
  kept: string[];
  lastChannel: number;
  open: [number, ChannelTotals][];
  notes: [string, JournalNote][];
  lost: [number, LostOutput][];
  oldest: number;
}

function encodeCheckpoint({ state, notes, lost, oldest }: Checkpoint): Buffer {
  const text: CheckpointText = {
    bootId: String(state.bootId),
    received: String(state.received),
    acknowledged: String(state.acknowledged),
    kept: state.kept.map((frame) => frame.toString("base64")),
    lastChannel: state.lastChannel,
    open: [...state.open],
    notes: [...notes],
    lost: [...lost],
    oldest,
  };
  return Buffer.from(JSON.stringify(text));
}

function decodeCheckpoint(bytes: Buffer): Checkpoint {
  const text = JSON.parse(bytes.toString()) as CheckpointText;
  return {
    state: {
      bootId: BigInt(text.bootId),
      received: BigInt(text.received),
      acknowledged: BigInt(text.acknowledged),
      kept: text.kept.map((frame) => Buffer.from(frame, "base64")),
      lastChannel: text.lastChannel,
      open: new Map(text.open),
    },
    notes: new Map(text.notes),
    lost: new Map(text.lost),
    oldest: text.oldest,
  };
}

function fileName(number: number): string {
  return `${number}.frames`;
}

function segmentsIn(directory: string): Segment[] {
  const numbers = readdirSync(directory).flatMap((name) => /^([0-9]{1,9})\.frames$/.exec(name)?.[1] ?? []);
  return numbers
    .map(Number)
    .sort((a, b) => a - b)
    .map((number) => ({ number, bytes: 0, headBytes: 0 }));
}

interface JournalRecord {
  kind: number;
  payload: Buffer;
}

function isCheckpoint({ kind }: JournalRecord): boolean {
  return kind === RecordKind.checkpoint;
}

/** Reads one file, notes its length, and cuts off what is not whole. */
function readSegment(directory: string, segment: Segment): JournalRecord[] {
  const path = join(directory, fileName(segment.number));
  const file = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) return [];
    const bytes = readFileSync(file);
    const { records, wholeBytes } = recordsIn(bytes);
    if (wholeBytes < bytes.length) ftruncateSync(file, wholeBytes);
    segment.bytes = wholeBytes;
    return records;
  } finally {
    closeSync(file);
  }
}

function recordsIn(bytes: Buffer): { records: JournalRecord[]; wholeBytes: number } {
  const records: JournalRecord[] = [];
  let at = 0;
  while (at + RECORD_HEAD_BYTES <= bytes.length) {
    const length = bytes.readUInt32LE(at + 1);
    const end = at + RECORD_HEAD_BYTES + length;
    if (length > MAX_RECORD_BYTES || end > bytes.length) break;
    records.push({ kind: bytes.readUInt8(at), payload: bytes.subarray(at + RECORD_HEAD_BYTES, end) });
    at = end;
  }
  return { records, wholeBytes: at };
}
