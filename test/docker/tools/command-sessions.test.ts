import { afterAll, beforeAll, expect, it } from "vitest";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.js";
import { runningCommands } from "../../support/processes.js";
import { openTestSandbox, type TestSandbox } from "../../support/sandbox.js";

let opened: TestSandbox;
let tools: ToolRegistry;

beforeAll(async () => {
  opened = await openTestSandbox();
  tools = createToolRegistry(opened.sandbox, { cwd: opened.workspace });
});

afterAll(async () => {
  await tools.close();
  await opened[Symbol.asyncDispose]();
});

const call = async (name: string, args: object) => (await tools.get(name).execute(args)).content;

/** The report of a call, in its parts. */
function partsOf(report: string) {
  const form =
    /^Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\n(?:Process exited with code (\d+)\n)?(?:Process running with session ID (\d+)\n)?Original token count: (\d+)\nOutput:\n(.*)$/s;
  const parts = form.exec(report);
  if (parts === null) throw new Error(report);
  const [, code, session, , output = ""] = parts;
  return { code: Number(code), session: Number(session), output };
}

/** Goes on reading until the session has said this or has ended. */
async function readOn(first: ReturnType<typeof partsOf>, wanted?: RegExp): Promise<typeof first> {
  let { code, output } = first;
  while (Number.isNaN(code) && !wanted?.test(output)) {
    const next = partsOf(await call("write_stdin", { session_id: first.session }));
    code = next.code;
    output += next.output;
  }
  return { code, session: first.session, output };
}

it("a command with pipes is followed to its end, both streams in their order", async () => {
  const cmd = "echo one; echo two >&2; until test -e go; do sleep 0.05; done; echo three; exit 3";
  const first = await readOn(partsOf(await call("exec_command", { cmd, yield_time_ms: 300 })), /two/);
  expect(first).toMatchObject({ code: Number.NaN, output: "one\ntwo\n" });
  await opened.sandbox.files.write(`${opened.workspace}/go`, "");
  expect(await readOn({ ...first, output: "" })).toMatchObject({ code: 3, output: "three\n" });
  expect(await call("write_stdin", { session_id: first.session })).toBe(
    `write_stdin failed: Unknown process id ${first.session}`,
  );
});

it("a terminal has its size, takes what is typed, and control-C interrupts what runs in it", async () => {
  const start = { cmd: "stty size; exec sh", tty: true, yield_time_ms: 500, login: false };
  const shell = await readOn(partsOf(await call("exec_command", start)), /24 80/);
  const type = async (chars: string, wanted?: RegExp) =>
    await readOn(
      partsOf(await call("write_stdin", { session_id: shell.session, chars, yield_time_ms: 700 })),
      wanted,
    );
  await type("sleep 61; echo slept $?\n", /slept/);
  await expect.poll(() => runningCommands(opened.sandbox)).toContain("sleep 61");
  await type("\u0003", /\^C/);
  await type("echo still $((40 + 2))\n", /still 42/);
  expect(await type("exit 7\n")).toMatchObject({ code: 7 });
});

it("a command without a terminal has no stdin to type into", async () => {
  const { session } = partsOf(await call("exec_command", { cmd: "sleep 30", yield_time_ms: 250 }));
  expect(await call("write_stdin", { session_id: session, chars: "x" })).toBe(
    "write_stdin failed: stdin is closed for this session; rerun exec_command with tty=true to keep stdin open",
  );
});

it("control-C interrupts a command without a terminal", async () => {
  const cmd = "trap 'echo interrupted; exit 5' INT; echo waiting; while :; do sleep 0.05; done";
  const first = await readOn(partsOf(await call("exec_command", { cmd, yield_time_ms: 250 })), /waiting/);
  const typed = { session_id: first.session, chars: "\u0003", yield_time_ms: 30_000 };
  expect(partsOf(await call("write_stdin", typed))).toMatchObject({
    code: 5,
    output: expect.stringContaining("interrupted\n"),
  });
});

it("what is left of a flood is its head and its tail, and what is between them is counted", async () => {
  const { code, output } = partsOf(
    await call("exec_command", { cmd: "echo head; seq 1 400000; echo tail", max_output_tokens: 50 }),
  );
  expect(code).toBe(0);
  expect(output).toMatch(/head\n1\n2\n.*…\d+ tokens truncated….*400000\ntail\n$/s);
});

it("65 sessions are 64: the one used least recently is ended, process and all", async () => {
  const running = async () =>
    (
      await opened.sandbox.exec(["sh", "-c", "cat /proc/[0-9]*/comm | grep -c ^sleep$ || true"])
    ).stdout.trim();
  const before = Number(await running());
  const start = () => call("exec_command", { cmd: "exec sleep 300", yield_time_ms: 250, login: false });
  const reports = await Promise.all(Array.from({ length: 65 }, start));
  const sessions = reports.map((report) => partsOf(report).session);
  expect(new Set(sessions).size).toBe(65);
  await expect.poll(running).toBe("64");
  expect(before).toBeLessThan(2);
}, 120_000);
