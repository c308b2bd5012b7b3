import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testEngine } from "../support/engine.js";
import {
  type CheckContainer,
  openCheckContainer,
  runnerChecks,
  sanitizerFindings,
  watchedToolbox,
} from "../support/runner-builds.js";
import { openTestSandbox } from "../support/sandbox.js";

/** For a night of fuzzing: BRIG_FUZZ_SECONDS=28800 npx vitest run --config test/vitest.config.ts runner-native */
const fuzzSeconds = Number(process.env.BRIG_FUZZ_SECONDS ?? 30);
const buildMs = 15 * 60_000;
/** Each program lists the tests that it runs. */
const sources = fileURLToPath(new URL("../../images/toolbox/runner/test/unit", import.meta.url));

describe("the runner's native tests", () => {
  let checks: CheckContainer;

  beforeAll(async () => {
    const engine = await testEngine();
    checks = await openCheckContainer(engine, await runnerChecks(engine));
  }, buildMs);

  afterAll(() => checks[Symbol.asyncDispose]());

  it.each([
    ["its parts do what they promise", "main"],
    ["the parts that everything else is made of do so too", "parts"],
    ["a commit keeps its promise, whatever others do meanwhile and wherever it dies", "trees"],
    ["a commit says what it was asked for in vain, and waits for another one", "commits"],
    [
      "a commit of which any call fails, or that dies at any call, is done or was never there",
      "commit-failures",
    ],
    ["a commit looks at all it is told to expect, and gets past modes that shut it out", "places"],
    ["records of a commit and digests are what their bytes say", "records"],
    ["it knows which file systems commands can fill, and when they have", "rooms"],
    [
      "it sees when commands take more of the machine than a sandbox may, in what counts for none",
      "uncounted",
    ],
    ["an operation on files of which any call fails says so, and leaves nothing half done", "file-failures"],
    ["a journal is read only as it was written, and only by whom it is for", "journals"],
    ["what is read about processes is about the right ones", "processes"],
    ["a receipt tells of what can hurt whoever uses the files, and of nothing else", "receipts"],
    ["the changes of a tree are all that differs from its base", "changes"],
    ["a copy takes what it was asked for, whatever others do to the files meanwhile", "copies"],
    ["its event loop keeps its bounds, towards whoever connects and towards a host", "session"],
    [
      "sockets in a sandbox lose nothing when the kernel refuses, interrupts or cuts short a call, and keep their limits",
      "sockets",
    ],
    ["its event loop does so too, whatever its host and its workers say", "edges"],
    ["the whole runner gives commands what the host asks for, and tells the host what they do", "whole"],
    ["it is started, spoken to and ended only as it should be", "doors"],
    ["its report says what the kernel has answered, to every attempt", "reports"],
  ])("%s, under the address and undefined-behaviour sanitizers: %s.c", async (_, name) => {
    const listed = await readFile(join(sources, `${name}.c`), "utf8");
    const { exitCode, output } = await checks.run([
      name === "main" ? "/checks/unit" : `/checks/unit-${name}`,
    ]);
    expect(output.match(/^ok .*/gm), output).toEqual(
      [...listed.matchAll(/^ {4}(?:RUN|TEST)\((\w+)\)/gm)].map(([, test]) => `ok ${test}`),
    );
    expect(exitCode, output).toBe(0);
  });

  it(
    "no input makes its parsers, its stream or its event loop break a rule",
    async () => {
      const { exitCode, output } = await checks.run(["/checks/run", String(fuzzSeconds)]);
      process.stdout.write(
        `fuzzed for ${fuzzSeconds} s: target, executions, edges, features, inputs\n${output}`,
      );
      expect(exitCode, output).toBe(0);
      const found = output.trim().split("\n").map(fuzzResult);
      expect(found.map(({ target }) => target)).toEqual(["frames", "requests", "link", "session"]);
      for (const { executions, edges } of found) {
        expect(executions).toBeGreaterThan(50);
        expect(edges).toBeGreaterThan(40);
      }
    },
    (fuzzSeconds + 120) * 1000,
  );

  it("the fuzzer finds a frame parser that trusts the length it is told", async () => {
    const { exitCode, output } = await checks.run(["/src/runner/test/fuzz/plant-fault"]);
    // Which of the target's rules it breaks first depends on the fuzzer's luck; a sound parser breaks none, as shown above.
    expect(output).toMatch(/frames\.c:\d+: does not hold: |heap-buffer-overflow/);
    expect(exitCode).not.toBe(0);
  });
});

describe("the runner that sanitizers watch", () => {
  it(
    "leaves a report in the sandbox when something goes wrong in it",
    async () => {
      const toolboxVolume = await watchedToolbox(await testEngine());
      await using opened = await openTestSandbox({ toolboxVolume });
      const { sandbox } = opened;
      expect(await sanitizerFindings(sandbox)).toBe("");
      const { exitCode } = await sandbox.exec(["/.brig/fault", "too long by one"]);
      expect(exitCode).not.toBe(0);
      expect(await sanitizerFindings(sandbox)).toContain("heap-buffer-overflow");
    },
    buildMs,
  );
});

function fuzzResult(line: string): { target: string; executions: number; edges: number } {
  const [target = "", executions, edges] = line.split(" ");
  return { target, executions: Number(executions), edges: Number(edges) };
}
