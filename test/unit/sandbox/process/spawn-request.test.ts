import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeSize, encodeSpawn, type SpawnRequest } from "../../../../src/sandbox/process/spawn-request.js";

const plain: SpawnRequest = {
  argv: ["true"],
  cwd: "/",
  env: {},
  timeoutMs: undefined,
  pty: undefined,
  hasStdin: false,
  mergeOutput: false,
  endsTree: false,
};

/** Reads a SPAWN payload as the protocol's table has it. */
function decode(payload: Buffer) {
  let at = 16;
  const uint32 = () => {
    at += 4;
    return payload.readUInt32LE(at - 4);
  };
  const text = () => {
    const length = uint32();
    at += length;
    return payload.toString("utf8", at - length, at);
  };
  const vector = () => Array.from({ length: uint32() }, text);
  const [cwd, argv, env] = [text(), vector(), vector()];
  expect(at).toBe(payload.length);
  return {
    flags: payload[0],
    rows: payload.readUInt16LE(2),
    cols: payload.readUInt16LE(4),
    timeoutMs: payload.readUInt32LE(8),
    graceMs: payload.readUInt32LE(12),
    cwd,
    argv,
    env,
  };
}

const word = fc.string({ unit: "binary", maxLength: 200 }).filter((text) => !text.includes("\0"));
const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,20}$/);

describe("a request to start a command", () => {
  it("carries arguments, environment and directory as they were given", () => {
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 20 }).filter(([program]) => program !== ""),
        fc.dictionary(name, fc.option(word, { nil: undefined }), { noNullPrototype: true }),
        word,
        (argv, env, directory) => {
          const decoded = decode(encodeSpawn({ ...plain, argv, env, cwd: `/${directory}` }));
          expect(decoded).toMatchObject({ argv, cwd: `/${directory}`, flags: 2, timeoutMs: 0, graceMs: 500 });
          expect(decoded.env).toEqual(
            Object.entries(env).map(([key, value]) => (value === undefined ? key : `${key}=${value}`)),
          );
        },
      ),
    );
  });

  it("says how its streams are wanted, and whether anything may outlive it", () => {
    const flags = (changes: Partial<SpawnRequest>) => decode(encodeSpawn({ ...plain, ...changes }));
    expect(flags({ hasStdin: true }).flags).toBe(0);
    expect(flags({ mergeOutput: true }).flags).toBe(6);
    expect(flags({ endsTree: true }).flags).toBe(10);
    expect(flags({ hasStdin: true, pty: { rows: 24, cols: 80 } })).toMatchObject({
      flags: 1,
      rows: 24,
      cols: 80,
    });
  });

  it("rounds a timeout to a whole millisecond, and never to none", () => {
    const timeout = (timeoutMs: number) => decode(encodeSpawn({ ...plain, timeoutMs })).timeoutMs;
    expect([timeout(0.01), timeout(1.4), timeout(86_400_000)]).toEqual([1, 1, 86_400_000]);
  });

  it.for<[string, Partial<SpawnRequest>, string]>([
    ["an empty command", { argv: [] }, "exec.invalid"],
    ["an empty program", { argv: ["", "x"] }, "exec.invalid"],
    ["NUL in an argument", { argv: ["a", "b\0"] }, "exec.invalid"],
    ["NUL in a value", { env: { A: "\0" } }, "exec.invalid"],
    ["NUL in a name", { env: { "A\0": "" } }, "exec.invalid"],
    ["a name with an equals sign", { env: { "A=": "" } }, "exec.invalid"],
    ["an argument one byte too long", { argv: ["a", "x".repeat(131_072)] }, "exec.invalid"],
    ["an argument too long in bytes only", { argv: ["a", "é".repeat(65_536)] }, "exec.invalid"],
    ["a variable one byte too long", { env: { A: "x".repeat(131_070) } }, "exec.invalid"],
    ["a negative timeout", { timeoutMs: -1 }, "exec.invalid"],
    ["an endless timeout", { timeoutMs: Number.POSITIVE_INFINITY }, "exec.invalid"],
    ["a terminal of half a row", { pty: { rows: 0.5, cols: 1 } }, "exec.invalid"],
    ["a terminal too wide", { pty: { rows: 1, cols: 65_536 } }, "exec.invalid"],
    ["a relative directory", { cwd: "a" }, "exec.bad-cwd"],
    ["no directory", { cwd: "" }, "exec.bad-cwd"],
  ])("is refused with %s", ([, changes, code]) => {
    expect(() => encodeSpawn({ ...plain, ...changes })).toThrow(expect.objectContaining({ code }));
  });

  it.for([
    ["ls -la", 'the command is a text; pass a list: ["ls", "-la"], or ["sh", "-c", "ls -la"]'],
    ["ls", 'the command is a text; pass a list: ["ls"], or ["sh", "-c", "ls"]'],
    ["echo 'a  b' | wc", 'the command is a text; pass a list: ["sh", "-c", "echo \'a  b\' | wc"]'],
  ])("says how the text %j is passed as a list", ([argv, message]) => {
    const encode = () => encodeSpawn({ ...plain, argv: argv as never });
    expect(encode).toThrow(expect.objectContaining({ code: "exec.invalid", message }));
  });

  it("may carry the longest string the kernel takes", () => {
    const argument = "x".repeat(131_071);
    expect(decode(encodeSpawn({ ...plain, argv: ["a", argument] })).argv[1]).toBe(argument);
  });

  it("gives a terminal's size as rows, then columns", () => {
    expect(encodeSize({ rows: 1, cols: 258 }).toString("hex")).toBe("01000201");
  });
});
