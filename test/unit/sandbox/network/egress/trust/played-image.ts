import { posix } from "node:path";
import { EntryType, FrameType, ReadFlag, StatFlag } from "../../../../../../src/sandbox/channel/protocol.js";
import type { CommandContext } from "../../../../../../src/sandbox/process/command.js";
import { type FakeRunner, type SentFrame, uint32 } from "../../../channel/fake-runner.js";
import {
  answerFiles,
  type PlayedAnswer,
  type PlayedRequest,
  parseRequest,
  readResult,
  statResult,
} from "../../../channel/played-files.js";
import { playedLink } from "../../../channel/played-link.js";

/** A file with this content, or a symbolic link. */
export type ImageEntry = string | Buffer | { link: string };

/** A command that was started. */
export interface PlayedRun {
  argv: string[];
  env: string[];
  timeoutMs: number;
  /** Whether all that it leaves behind is to end with it. */
  endsTree: boolean;
}

const ERRNO = { ENOENT: 2, EISDIR: 21, EFBIG: 27, ELOOP: 40 } as const;
const MAX_LINKS = 40;
const PIECE_BYTES = 64 * 1024;
const ENDS_TREE = 8;
const KILLED = 137;

/** The files of an image, and what is done in a container of it, as a kernel and brig's runner would answer. */
export class PlayedImage {
  readonly requests: (PlayedRequest & { at: string })[] = [];
  readonly runs: PlayedRun[] = [];
  readonly written = new Map<string, { text: string; data: Buffer; mode: number }>();
  readonly made: { path: string; mode: number; flags: number }[] = [];
  /** An error instead of the answer to a request. Default: none. */
  fails: (operation: PlayedRequest["operation"], path: string) => number = () => 0;
  /** The status that a command exits with; undefined for one that runs until it is killed. Default: 0. */
  runsCommand: (run: PlayedRun) => number | undefined = () => 0;
  readonly #entries: Map<string, ImageEntry>;

  constructor(entries: Readonly<Record<string, ImageEntry>> = {}) {
    this.#entries = new Map(Object.entries(entries));
  }

  /** What to do with each frame that comes to the runner. */
  answers(runner: FakeRunner): (sent: SentFrame) => void {
    const before = runner.onFrame;
    answerFiles(runner, (request) => this.#answer(request));
    const answerFile = runner.onFrame;
    runner.onFrame = before;
    const running = new Set<number>();
    return (sent) => {
      if (sent.type === FrameType.kill && running.delete(sent.channel))
        return runner.exit(sent.channel, KILLED);
      if (sent.type !== FrameType.spawn) return answerFile(sent);
      const run = decodeSpawn(sent.payload);
      this.runs.push(run);
      const code = this.runsCommand(run);
      if (code === undefined) running.add(sent.channel);
      else runner.exit(sent.channel, code);
    };
  }

  #answer(request: PlayedRequest): PlayedAnswer {
    const at = request.path.toString();
    this.requests.push({ ...request, at });
    if (request.operation === "sequence") return this.#inOrder(request.second);
    const errno = this.fails(request.operation, at);
    if (errno !== 0) return { errno };
    if (request.operation === "write") return this.#write(request, at);
    if (request.operation === "mkdir") {
      this.made.push({ path: at, mode: request.mode, flags: request.flags });
      return {};
    }
    const isOfLink = request.operation === "stat" && request.flags === StatFlag.linkItself;
    const found = this.#find(at, { followsLast: !isOfLink });
    if (typeof found === "number") return { errno: found };
    return request.operation === "stat" ? { result: statOf(found.entry) } : contentOf(found.entry, request);
  }

  #inOrder(requests: Buffer): PlayedAnswer {
    let written = 0;
    for (let at = 0; at < requests.length; written++) {
      const end = at + 4 + requests.readUInt32LE(at);
      const { errno = 0 } = this.#answer(parseRequest(requests.subarray(at + 4, end)));
      if (errno !== 0) return { errno, result: uint32(written) };
      at = end;
    }
    return { result: uint32(written) };
  }

  #write({ second, input, mode }: PlayedRequest, path: string): PlayedAnswer {
    const data = Buffer.from(input.length > 0 ? input : second);
    this.written.set(path, { text: data.toString(), data, mode });
    return {};
  }

  /** Follows links as a kernel does: a `..` leads up from where the link before it leads. */
  #find(path: string, { followsLast }: { followsLast: boolean }): { entry: ImageEntry | null } | number {
    const names = path.split("/").reverse();
    let at = "/";
    for (let links = 0; names.length > 0; ) {
      const next = posix.join(at, names.pop() ?? "");
      const entry = this.#entries.get(next);
      if (entry === undefined && !this.#isDirectory(next)) return ERRNO.ENOENT;
      if (isLink(entry) && (followsLast || names.length > 0)) {
        if (++links > MAX_LINKS) return ERRNO.ELOOP;
        if (entry.link.startsWith("/")) at = "/";
        names.push(...entry.link.split("/").reverse());
      } else at = next;
    }
    return { entry: this.#entries.get(at) ?? null };
  }

  #isDirectory(path: string): boolean {
    const prefix = path === "/" ? "/" : `${path}/`;
    return [...this.#entries.keys()].some((one) => one.startsWith(prefix));
  }
}

/** A container of an image, for parts that get a link or a context. */
export async function playedImage(entries: Readonly<Record<string, ImageEntry>> = {}) {
  const image = new PlayedImage(entries);
  const { runner, link } = await playedLink();
  runner.onFrame = image.answers(runner);
  const context: CommandContext = { link, cwd: "/", env: {}, onStuck: () => undefined };
  return { image, runner, link, context };
}

function isLink(entry: ImageEntry | undefined): entry is { link: string } {
  return typeof entry === "object" && "link" in entry;
}

function statOf(entry: ImageEntry | null): Buffer {
  if (entry === null) return statResult({ type: EntryType.directory });
  if (isLink(entry)) return statResult({ type: EntryType.symlink, target: Buffer.from(entry.link) });
  return statResult({ type: EntryType.file, size: BigInt(entry.length) });
}

function contentOf(entry: ImageEntry | null, { flags, length }: PlayedRequest): PlayedAnswer {
  if (entry === null || isLink(entry)) return { errno: ERRNO.EISDIR };
  const whole = Buffer.from(entry as string);
  const data = whole.subarray(0, Number(length));
  if ((flags & ReadFlag.allOrNone) !== 0 && whole.length >= length) return { errno: ERRNO.EFBIG };
  if ((flags & ReadFlag.inline) !== 0) return { result: readResult(0, data) };
  const output = [];
  for (let at = 0; at < data.length; at += PIECE_BYTES) output.push(data.subarray(at, at + PIECE_BYTES));
  return { output, result: readResult() };
}

/** Reads a request to start a command as it reaches the runner. */
export function decodeSpawn(payload: Buffer): PlayedRun {
  let at = 16;
  const uint32At = () => {
    at += 4;
    return payload.readUInt32LE(at - 4);
  };
  const text = () => {
    const length = uint32At();
    at += length;
    return payload.toString("utf8", at - length, at);
  };
  const vector = () => Array.from({ length: uint32At() }, text);
  text();
  const argv = vector();
  return {
    argv,
    env: vector(),
    timeoutMs: payload.readUInt32LE(8),
    endsTree: (payload.readUInt8(0) & ENDS_TREE) !== 0,
  };
}
