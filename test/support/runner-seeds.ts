import { encodeFrame } from "../../src/sandbox/channel/frames.js";
import { FrameType, INITIAL_CREDIT, PROTOCOL_VERSION } from "../../src/sandbox/channel/protocol.js";
import type { TarFile } from "../../src/sandbox/docker/calls/tar.js";
import {
  encodeSize,
  encodeSpawn,
  encodeUint32,
  lengthPrefixed,
} from "../../src/sandbox/process/spawn-request.js";
import { encodeRecord, sortRecords } from "../../src/sandbox/tree/tree-commit.js";

/** What each fuzz target of images/toolbox/runner/test/fuzz begins with, made by the host's own encoders. */
export function runnerSeeds(): TarFile[] {
  return Object.entries({ frames, requests, link, session }).flatMap(([target, seeds]) =>
    Object.entries(seeds()).map(([name, content]) => ({
      path: `seeds/${target}/${name}`,
      mode: 0o644,
      content,
    })),
  );
}

/** The first byte is the size of the pieces. */
function frames(): Record<string, Buffer> {
  const stream = Buffer.concat([
    encodeFrame(FrameType.hello, 0, hello()),
    encodeFrame(FrameType.spawn, 1, spawn()),
    encodeFrame(FrameType.input, 1, Buffer.from("input")),
    encodeFrame(FrameType.input, 1, Buffer.alloc(0)),
    encodeFrame(FrameType.resize, 1, encodeSize({ rows: 24, cols: 80 })),
    encodeFrame(FrameType.kill, 1, encodeUint32(500)),
    encodeFrame(FrameType.credit, 1, encodeUint32(INITIAL_CREDIT)),
    encodeFrame(FrameType.file, 2, file(1, "/etc/passwd")),
    encodeFrame(FrameType.ping, 0, Buffer.from("1")),
  ]);
  return {
    whole: Buffer.concat([Buffer.of(63), stream]),
    bytewise: Buffer.concat([Buffer.of(0), stream]),
    cut: Buffer.concat([Buffer.of(6), stream.subarray(0, -1)]),
    "too-long": Buffer.concat([Buffer.of(6), encodeUint32(0xffff_ffff), Buffer.alloc(8, 1)]),
    "session-type-on-a-channel": Buffer.concat([
      Buffer.of(6),
      encodeFrame(FrameType.hello, 1, Buffer.alloc(0)),
    ]),
  };
}

/** The first byte chooses the parser: SPAWN, FILE, HELLO, a sequence, or the records of a commit. */
function requests(): Record<string, Buffer> {
  return {
    spawn: Buffer.concat([Buffer.of(0), spawn()]),
    read: Buffer.concat([Buffer.of(1), file(1, "/etc/passwd")]),
    rename: Buffer.concat([Buffer.of(1), file(6, "/a", "/b")]),
    "inline-write": Buffer.concat([Buffer.of(1), file(2, "/a", "b\0c", 2)]),
    "write-without-links": Buffer.concat([Buffer.of(1), file(2, "/a", "b", 2 | 128)]),
    sequence: Buffer.concat([
      Buffer.of(3),
      ...["/a", "/b"].map((path) => lengthPrefixed(file(2, path, "c", 2))),
    ]),
    "inline-list": Buffer.concat([Buffer.of(1), file(4, "/a", "", 1)]),
    "inline-read": Buffer.concat([Buffer.of(1), file(1, "/a", "", 2)]),
    changes: Buffer.concat([Buffer.of(1), file(11, "/merged", "/base\0/upper\0.git\0")]),
    commit: Buffer.concat([Buffer.of(1), file(12, "/base", `${"k".repeat(32)}.brig-stage-1`)]),
    copy: Buffer.concat([Buffer.of(1), file(14, "/merged", "/from\0")]),
    "commit-records": Buffer.concat([
      Buffer.of(4),
      ...sortRecords([
        { action: "put", path: "a/b", content: 1, mode: 0o644, expects: "absent" },
        { action: "symlink", path: "l", linkTarget: Buffer.from("a"), expects: "any" },
      ]).map(encodeRecord),
    ]),
    hello: Buffer.concat([Buffer.of(2), hello()]),
  };
}

function spawn(): Buffer {
  return encodeSpawn({
    argv: ["sh", "-c", "exit 3"],
    cwd: "/tmp",
    env: { A: "1", B: undefined },
    timeoutMs: 1000,
    pty: { rows: 24, cols: 80 },
    hasStdin: true,
    mergeOutput: false,
    endsTree: false,
  });
}

function file(...[operation, path, second = "", flags = 0]: [number, string, string?, number?]): Buffer {
  const head = Buffer.alloc(24);
  head.writeUInt8(operation);
  head.writeUInt8(flags, 1);
  head.writeUInt32LE(100, 16);
  return Buffer.concat([head, lengthPrefixed(Buffer.from(path)), lengthPrefixed(Buffer.from(second))]);
}

function hello(): Buffer {
  return Buffer.concat([encodeUint32(PROTOCOL_VERSION), Buffer.alloc(32, 7), Buffer.alloc(8)]);
}

/** Steps of fuzz/link.c: the choice, then its arguments. */
function link(): Record<string, Buffer> {
  const send = (length: number) => [0, ...word(length)];
  const [flush, read, acknowledge, reconnect] = [[3], [5, ...word(8000)], [6], [8]];
  return {
    "sent-and-acknowledged": Buffer.from([...send(100), ...flush, ...read, ...acknowledge]),
    "broken-within-a-frame": Buffer.from([...send(5900), ...flush, 5, ...word(3000), ...reconnect, ...flush]),
    "control-between": Buffer.from([...send(5900), 2, 64, ...flush, ...send(10), ...read, ...flush, ...read]),
    "acknowledged-falsely": Buffer.from([
      ...send(9),
      ...send(9),
      ...flush,
      7,
      4,
      ...read,
      7,
      0,
      ...acknowledge,
    ]),
    "much-taken-in": Buffer.from(Array.from({ length: 8 }, () => [9, ...word(40_000), 1]).flat()),
  };
}

/** Steps of fuzz/session.c. Two workers are ready: the first command goes to worker 1, the next ones to 0, 2, 3 … */
function session(): Record<string, Buffer> {
  const turn = [200];
  const clock = (ms: number) => [250, ...word(ms)];
  const spawned = (flags: number, timeout = 0) => [0, flags, timeout];
  const noStdin = 2;
  const endsTree = 8;
  const read = [6, ...word(59_999)];
  const acknowledge = [7];
  const [disconnect, connect] = [[8], [9]];
  const writes = (worker: number, bytes: number) => [100, worker, ...word(bytes - 1)];
  const reads = (worker: number) => [103, worker, ...word(4095)];
  const ends = (worker: number) => [107, worker];
  const isEmpty = (worker: number) => [108, worker];
  const dies = (worker: number) => [109, worker];
  const over = (worker: number) => [...ends(worker), ...isEmpty(worker), ...turn, ...turn, ...read];
  const killsAll = [245];
  const workers = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  const start = [...spawned(noStdin), ...turn, ...turn];
  return {
    output: Buffer.from([
      ...start,
      ...writes(1, 60_000),
      ...turn,
      ...read,
      ...acknowledge,
      ...turn,
      ...over(1),
    ]),
    "ends-unread": Buffer.from([
      ...start,
      ...writes(1, 60_000),
      ...turn,
      ...turn,
      ...ends(1),
      ...turn,
      ...clock(400),
      ...turn,
      ...read,
    ]),
    broken: Buffer.from([
      ...start,
      ...writes(1, 60_000),
      ...turn,
      ...disconnect,
      ...turn,
      ...writes(1, 3000),
      ...connect,
      ...turn,
      ...read,
      ...over(1),
    ]),
    background: Buffer.from([
      ...start,
      ...ends(1),
      ...writes(1, 9000),
      ...turn,
      ...clock(300),
      ...turn,
      ...writes(1, 9000),
      ...turn,
      ...read,
    ]),
    "background-ended": Buffer.from([
      ...spawned(noStdin | endsTree),
      ...turn,
      ...turn,
      ...ends(1),
      ...writes(1, 9000),
      ...turn,
      ...clock(300),
      ...turn,
      ...writes(1, 9000),
      ...turn,
      ...isEmpty(1),
      ...turn,
      ...read,
    ]),
    killed: Buffer.from([
      ...spawned(0),
      ...turn,
      3,
      0,
      ...word(3000),
      ...turn,
      ...reads(1),
      5,
      0,
      100,
      ...turn,
      ...clock(200),
      ...turn,
      ...over(1),
    ]),
    // Its deadline passes before a worker takes it.
    "given-up-before-it-begins": Buffer.from(
      "AAIAyMhkAcj6FADIawHI+pABAcj6kOMAIQAAAPqQAchkASb6FADIawEAAAAAAAAAAAAAAAD/////////////////////////////////////////////////RUVFRUVFRUVFRf/////////////////////////////////////////////////////////////////I+pAByPqQAcjIAAIAyAALyCkA/w9kAbf////////////////////IawFsAQABAAAAyAAAAMguX+rIAALIawFsAcgBAAAAAAAAAMgGX+o=",
      "base64",
    ),
    "reports-as-it-is-killed": Buffer.from([
      ...start,
      ...writes(1, 1),
      ...[5, 0, 0],
      ...turn,
      ...clock(20),
      ...turn,
      ...ends(1),
      ...turn,
      ...[...clock(400), ...turn],
      ...[...clock(400), ...turn],
      ...turn,
      ...[...spawned(noStdin), ...turn],
      ...[...spawned(noStdin), ...turn],
      ...over(1),
    ]),
    "all-killed": Buffer.from([
      ...start,
      ...killsAll,
      ...writes(1, 1),
      ...turn,
      ...turn,
      ...[...spawned(noStdin), ...turn],
      ...[...spawned(noStdin), ...turn],
      ...over(0),
      ...over(2),
      ...over(3),
    ]),
    "killed-after-its-report": Buffer.from([
      ...[2, 1],
      ...[2, 4],
      ...[...spawned(4, 144), ...turn],
      ...[...ends(0), ...spawned(0)],
      ...killsAll,
      ...[...ends(4), ...turn, ...turn],
      ...[...spawned(noStdin), ...spawned(0)],
    ]),
    // A worker that was dismissed is killed with others before it can end, and is the first of them to be seen dead.
    "killed-while-dismissed": Buffer.from(
      "AAIAAAMAAAAAAAEAAAIAAAMAAAAAAAEAyMhkAF/qZAFf6mQCX2QGX+pkB1/qZAhf6mRACV/qyMgGX+oHyGsAbADIyAZf6msBbAHIyAZf6msCbALIyAZf6msDbAPIAmwCyMgGX+prA2wDyMgGX+prBGwEyMgGX+prBWwFyMgGX+prBmwGyMgGX+prB2wHyMj4X+prCGwIyMgGX84GX+oJyMgGX+o=",
      "base64",
    ),
    "given-up": Buffer.from([
      ...start,
      ...[5, 0, 0],
      ...Array.from({ length: 8 }, () => [...turn, ...clock(900)]).flat(),
      ...turn,
      ...ends(1),
      ...turn,
      ...read,
    ]),
    "timed-out": Buffer.from([
      ...spawned(noStdin, 200),
      ...turn,
      ...writes(1, 100),
      ...clock(250),
      ...turn,
      ...clock(600),
      ...turn,
      ...over(1),
    ]),
    files: Buffer.from([
      2,
      0,
      2,
      1,
      2,
      2,
      ...turn,
      ...turn,
      3,
      1,
      ...word(3000),
      ...turn,
      ...reads(0),
      ...writes(1, 3000),
      ...over(1),
      ...over(0),
    ]),
    "inline-files": Buffer.from([2, 3, ...word(3000), 2, 4, ...turn, ...turn, ...over(1), ...over(0)]),
    "lost-workers": Buffer.from([
      ...start,
      ...spawned(0),
      ...turn,
      ...turn,
      ...dies(1),
      ...turn,
      ...dies(0),
      ...turn,
    ]),
    // 10 listens, 11 waits for a connection, 13 and 14 make one; 110 connects, 112 writes, 114 reads, 116 and 117 end.
    sockets: Buffer.from([
      ...[10, ...turn, ...read, 11, 11, 13, 14, 15, ...turn, ...turn, ...read],
      ...[110, 110, ...turn, ...turn, ...read, ...read],
      ...[0, 1, 2].flatMap((one) => [112, one, ...word(40_000), ...turn, ...read, ...acknowledge]),
      ...[2, 3, 4, 5].flatMap((channel) => [16, channel, ...word(4000), ...turn]),
      ...[0, 1, 2].flatMap((one) => [114, one, ...word(4000)]),
      ...[...disconnect, ...turn, 112, 0, ...word(9000), ...connect, ...turn, ...read],
      ...[116, 0, 117, 1, ...turn, ...read],
    ]),
    many: Buffer.from([
      ...workers.slice(2).flatMap((index) => spawned(index & 3)),
      ...turn,
      ...turn,
      ...workers.flatMap((worker) => writes(worker, 60_000)),
      ...turn,
      ...turn,
      ...read,
      ...acknowledge,
      ...turn,
      ...workers.flatMap(over),
    ]),
  };
}

const word = (value: number): [number, number] => [value & 0xff, value >> 8];
