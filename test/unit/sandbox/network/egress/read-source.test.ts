import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { readSource, readText } from "../../../../../src/sandbox/network/egress/read-egress.js";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "brig-source-"));
  onTestFinished(() => rm(home, { recursive: true }));
});

type Source = Parameters<typeof readSource>[0];

const secret = "secret-12";
const of = "the secret KEY";
const read = (source: Source, variables: Record<string, string> = {}) =>
  readSource(source, { of, environment: readEnvironment({ HOME: home, ...variables }) });
const shell = (script: string) => ["sh", "-c", script];
const refusal = (message: RegExp) => ({ code: "usage.invalid", message: expect.stringMatching(message) });

describe("where a secret is read", () => {
  it("is a value, a variable, a file or a program", async () => {
    await writeFile(join(home, "key"), `${secret}\n`);
    expect(await read({ value: secret })).toBe(secret);
    expect(await read({ env: "K" }, { K: secret })).toBe(secret);
    expect(await read({ file: join(home, "key") })).toBe(secret);
    expect(await read({ file: "~/key" })).toBe(secret);
    expect(await read({ command: shell(`echo ${secret}`) })).toBe(secret);
    expect(await read({ command: ["printf", "%s\\r\\n", secret] })).toBe(secret);
  });

  it.each([
    [{ env: "NONE" }, /variable NONE is not set/],
    [{ env: "EMPTY" }, /variable EMPTY is not set/],
    [{ file: "key" }, /not an absolute path: "key"/],
    [{ file: "~other/key" }, /not an absolute path/],
    [{ file: "~/none" }, /none does not exist/],
    [{ file: "/dev/null" }, /cannot be used: \/dev\/null/],
    [{ command: ["/proc/nonexistent/program"] }, /"\/proc\/nonexistent\/program" has failed/],
    [{ command: shell(`echo ${secret}; exit 1`) }, /"sh" has failed/],
  ])("is refused where there is none: %j", async (source, message) => {
    await expect(read(source, { EMPTY: "" })).rejects.toMatchObject(refusal(message));
  });

  it("has one line end taken off, and no more", async () => {
    await writeFile(join(home, "key"), `${secret}\n\n`);
    await expect(read({ file: "~/key" })).rejects.toMatchObject(refusal(/without spaces/));
  });

  it("says nothing of what a program printed", async () => {
    const failure = await read({ command: shell(`echo ${secret}; echo ${secret} >&2; exit 1`) }).catch(
      (error: unknown) => error,
    );
    expect((failure as Error).cause).toBe(undefined);
    expect(String(failure)).not.toContain(secret);
  });

  it("may leave a process behind that keeps its output open", async () => {
    expect(await read({ command: shell(`sleep 300 & echo $! > ${home}/pid; echo ${secret}`) })).toBe(secret);
    const pid = await readText(join(home, "pid"), { of, environment: readEnvironment({ HOME: home }) });
    process.kill(Number(pid));
  });
});

describe("a secret", () => {
  it.each([7, 8, 8192, 8193])(
    "of %d characters is taken if it can be found again and sent",
    async (length) => {
      const value = "x".repeat(length);
      if (length >= 8 && length <= 8192) expect(await read({ value })).toBe(value);
      else
        await expect(read({ value })).rejects.toMatchObject(
          refusal(/^the secret KEY does not have 8 to 8192/),
        );
    },
  );

  it.each(["has space", "has\ttab", "has\nline", "has-ünicode", "has\x7fdelete", "has\0null"])(
    "is refused where a header could not have it: %j",
    async (value) => {
      await expect(read({ value: `12345678${value}` })).rejects.toMatchObject(refusal(/printable ASCII/));
    },
  );

  it("may have every other character", async () => {
    const value = String.fromCharCode(...Array.from({ length: 94 }, (_, index) => 0x21 + index));
    expect(await read({ value })).toBe(value);
  });
});
