import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrigOptions, brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

let folder: TemporaryDirectory;
let work: string;
let ofTheTest: BrigOptions;

beforeAll(async () => {
  folder = await temporaryDirectory();
  work = join(folder.path, "work");
  await mkdir(work);
  ofTheTest = { cwd: work, env: { BRIG_HOME: join(folder.path, "home") } };
});

afterAll(() => folder[Symbol.asyncDispose]());

/** Many tests run the program in their own process, which has to be no other program than the real one. */
describe.each([
  ["as a process", brig],
  ["in the process of the test", brigHere],
])("brig %s", (_, start) => {
  it("passes on streams, directory and exit status", async () => {
    const { exitCode, stdout, stderr } = await start(
      ["exec", "-i", "--", "sh", "-c", "pwd; cat; echo ö >&2; exit 3"],
      { ...ofTheTest, input: "givén\n" },
    );
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 3,
      stdout: `${work}\ngivén\n`,
      stderr: "ö\n",
    });
  });

  it("takes its environment from the test", async () => {
    const env = { BRIG_HOME: "/etc/passwd" };
    const { exitCode, stdout, stderr } = await start(["sessions"], { ...ofTheTest, env });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain("brig keeps its files in /etc/passwd");
  });

  it("has no input unless the test gives some", async () => {
    const { exitCode, stderr } = await start(["run", "-"], ofTheTest);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("there is no prompt");
  });

  it("ends in order when it is interrupted", async () => {
    const running = start(["exec", "--", "sh", "-c", "echo up; sleep 600"], ofTheTest);
    running.stdout.once("data", () => running.kill("SIGTERM"));
    const { exitCode, stdout, stderr } = await running;
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 143,
      stdout: "up\n",
      stderr: "brig: interrupted by SIGTERM\n",
    });
  });

  it("can run twice at the same time", async () => {
    const both = await Promise.all(
      ["1", "2"].map((n) => start(["exec", "--", "sh", "-c", `echo ${n}; exit ${n}`], ofTheTest)),
    );
    expect(both).toMatchObject([
      { exitCode: 1, stdout: "1\n" },
      { exitCode: 2, stdout: "2\n" },
    ]);
  });
});
