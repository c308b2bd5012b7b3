import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../../src/errors.js";
import { exitStatus, parseExit, startError } from "../../../../src/sandbox/process/exit-record.js";

interface Fields {
  kind: number;
  flags?: number;
  code?: number;
  errno?: number;
  stage?: number;
}

function payload(
  { kind, flags = 0, code = 0, errno = 0, stage = 0 }: Fields,
  result = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(44);
  head[0] = kind;
  head[1] = flags;
  head.writeUInt16LE(code, 2);
  head.writeUInt32LE(errno, 4);
  head.writeUInt32LE(stage, 8);
  head.writeBigUInt64LE(1500n, 12);
  head.writeBigUInt64LE(2500n, 20);
  head.writeBigUInt64LE(4096n, 28);
  head.writeBigUInt64LE(1_234_567n, 36);
  return Buffer.concat([head, result]);
}

const status = (fields: Fields) => exitStatus(parseExit(payload(fields)), "prog");
const [FORK, CWD, EXEC, STREAMS, REQUEST] = [1, 2, 3, 4, 5];
const [ENOENT, E2BIG, EAGAIN, EACCES, ENOTDIR, EMFILE] = [2, 7, 11, 13, 20, 24];

describe("the record of an exit", () => {
  it("is parsed or refused, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), (bytes) => {
        try {
          const record = parseExit(Buffer.from(bytes));
          expect(record.result).toHaveLength(bytes.length - 44);
          exitStatus(record, "prog");
          startError(record, { argv: ["prog"], cwd: "/" });
        } catch (error) {
          expect(isBrigError(error, "protocol.invalid")).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("keeps the result of a file operation apart from the buffer it came in", () => {
    const bytes = payload({ kind: 4 }, Buffer.from("result"));
    const record = parseExit(bytes);
    bytes.fill(0);
    expect(record.result.toString()).toBe("result");
  });

  it("tells times in milliseconds and memory in bytes", () => {
    expect(status({ kind: 0 })).toMatchObject({
      durationMs: 1234.567,
      usage: { userMs: 1.5, systemMs: 2.5, maxRssBytes: 4096 },
    });
  });

  it.for<[string, Fields, object]>([
    ["an exit code", { kind: 0, code: 77 }, { exitCode: 77, signal: null }],
    ["a signal", { kind: 1, code: 9 }, { exitCode: 137, signal: "SIGKILL" }],
    ["SIGABRT by its usual name", { kind: 1, code: 6 }, { exitCode: 134, signal: "SIGABRT" }],
    ["a signal without a name", { kind: 1, code: 40 }, { exitCode: 168, signal: null }],
    ["a lost supervisor", { kind: 3, code: 9 }, { exitCode: 137, signal: "SIGKILL" }],
    ["a timeout", { kind: 1, code: 15, flags: 1 }, { exitCode: 124, timedOut: true, signal: "SIGTERM" }],
    ["a want of memory", { kind: 1, code: 9, flags: 4 }, { exitCode: 137, outOfMemory: true }],
    ["something left that was ended", { kind: 0, flags: 32 }, { exitCode: 0, treeEnded: true }],
    [
      "a missing program",
      { kind: 2, errno: ENOENT, stage: EXEC },
      { exitCode: 127, startFailure: { stage: "exec", errno: "ENOENT", message: "prog: command not found" } },
    ],
    [
      "a file as directory",
      { kind: 2, errno: ENOTDIR, stage: EXEC },
      {
        exitCode: 127,
        startFailure: { stage: "exec", errno: "ENOTDIR", message: "prog: command not found" },
      },
    ],
    [
      "a program that may not run",
      { kind: 2, errno: EACCES, stage: EXEC },
      { exitCode: 126, startFailure: { stage: "exec", errno: "EACCES", message: "prog: permission denied" } },
    ],
    [
      "an errno without a name",
      { kind: 2, errno: 999, stage: EXEC },
      {
        exitCode: 126,
        startFailure: { stage: "exec", errno: "errno 999", message: "prog: cannot be executed: errno 999" },
      },
    ],
    [
      "no place for a process",
      { kind: 2, errno: EAGAIN, stage: FORK },
      {
        exitCode: 126,
        startFailure: {
          stage: "fork",
          errno: "EAGAIN",
          message: expect.stringContaining("process or memory limit"),
        },
      },
    ],
    [
      "no place for streams",
      { kind: 2, errno: EMFILE, stage: STREAMS },
      {
        exitCode: 126,
        startFailure: { stage: "streams", errno: "EMFILE", message: expect.stringContaining("EMFILE") },
      },
    ],
  ])("tells of %s", ([, fields, expected]) => {
    expect(status(fields)).toMatchObject(expected);
  });

  it.for<[string, Fields, string | null, string?]>([
    ["a directory that cannot be entered", { kind: 2, errno: ENOENT, stage: CWD }, "exec.bad-cwd", "ENOENT"],
    ["arguments that are too long together", { kind: 2, errno: E2BIG, stage: EXEC }, "exec.invalid", "E2BIG"],
    ["a request the runner did not take", { kind: 2, errno: ENOENT, stage: REQUEST }, "protocol.invalid"],
    ["a missing program", { kind: 2, errno: ENOENT, stage: EXEC }, null],
    ["a command that failed", { kind: 0, code: 1 }, null],
  ])("of %s is the caller's mistake or a result", ([, fields, code, errno]) => {
    const error = startError(parseExit(payload(fields)), { argv: ["prog"], cwd: "/nowhere" });
    expect(error?.code ?? null).toBe(code);
    expect(error?.errno).toBe(errno);
  });
});
