import { cp, mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import type { Command } from "commander";
import { readSessionLines } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { write } from "../../command/index.js";
import { jsonText } from "../../lib/json/json-text.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { packageRoot } from "../../package-root.js";
import { unifiedText } from "../../sandbox/index.js";
import { runCommand } from "../commands/run.js";
import { lastSession } from "../sessions/chosen-session.js";

const EXAMPLE = join(packageRoot, "examples/fix-failing-test");
const PROMPT = "The tests of this project fail. Find the bug, fix it, and show that they pass.";

interface DemoFlags {
  json?: boolean;
}

export function defineDemo(command: Command, context: CliContext): void {
  command
    .option("--json", "print only events on stdout, those of brig run and then demo.ended")
    .addHelpText("after", help)
    .action(async (flags: DemoFlags) => await runDemo(flags, context));
}

const help = `
It needs a container engine, but no model, account or network: the answers of the model are those of a script. It works on
a copy of a small project in a temporary directory, which is removed at the end.`;

async function runDemo({ json = false }: DemoFlags, context: CliContext): Promise<void> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "brig-demo-")));
  try {
    const project = join(folder, "project");
    await cp(join(EXAMPLE, "project"), project, { recursive: true });
    await (json ? demoAsEvents : demoAsText)(project, context);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function demoAsText(project: string, context: CliContext): Promise<void> {
  const { stdout } = context;
  const heading = async (text: string) => await write(stdout, `\n== ${text}\n`);
  await heading("A scripted model works on a copy of a small project whose tests fail");
  const done = await fixBug(project, { context, json: false });
  if (done === null) return;
  await heading("What changed");
  await write(stdout, neutralise(done.patch));
  await heading("In figures");
  await write(stdout, figuresText(done.figures));
  await heading("The same with a real model");
  const copied = `cp -r ${join(EXAMPLE, "project")} /tmp/tidy-invoice`;
  await write(stdout, `${copied} && OPENAI_API_KEY=… brig run -C /tmp/tidy-invoice "${PROMPT}"\n`);
}

async function demoAsEvents(project: string, context: CliContext): Promise<void> {
  const done = await fixBug(project, { context, json: true });
  if (done === null) return;
  await write(context.stdout, `${jsonText({ type: "demo.ended", ...done.figures, patch: done.patch })}\n`);
}

interface Figures {
  session_file: string;
  /** From the start of the session until the container ran and its policy was checked. */
  start_ms: number;
  tool_calls: number;
  median_call_ms: number;
}

/** Runs the session, which prints what it does, and compares the project with what it was before. Null if the session has reported a failure. */
async function fixBug(
  project: string,
  { context, json }: { context: CliContext; json: boolean },
): Promise<{ patch: string; figures: Figures } | null> {
  const before = await readTree(project);
  const flags = { cd: project, json, sandbox: "workspace-write", script: join(EXAMPLE, "demo.yaml") };
  let hasFailed = false;
  const ofSession = {
    ...context,
    // Without a terminal as its input, the session asks nothing.
    stdin: Readable.from([]),
    setExitStatus(status: number) {
      hasFailed = true;
      context.setExitStatus(status);
    },
  };
  await runCommand(PROMPT, flags, { context: ofSession });
  if (hasFailed) return null;
  const patch = patchOf(before, await readTree(project));
  if (patch === "") context.setExitStatus(1);
  return { patch, figures: await readFigures(project, context) };
}

type Tree = ReadonlyMap<string, Buffer>;

async function readTree(folder: string): Promise<Tree> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    await Promise.all(files.map(async (file) => [relative(folder, file), await readFile(file)] as const)),
  );
}

function patchOf(before: Tree, after: Tree): string {
  const side = (content: Buffer | undefined) =>
    content === undefined ? null : { gitMode: "100644" as const, content };
  return [...new Set([...before.keys(), ...after.keys()])]
    .toSorted()
    .filter((path) => !before.get(path)?.equals(after.get(path) ?? Buffer.of(0)))
    .map((path) => unifiedText({ path, before: side(before.get(path)), after: side(after.get(path)) }).text)
    .join("");
}

async function readFigures(project: string, context: CliContext): Promise<Figures> {
  // No other session has worked in this directory.
  const { path } = await lastSession(context, { cd: project });
  const callsMs: number[] = [];
  let startMs = 0;
  for await (const line of readSessionLines(path)) {
    if (line.kind !== "record" || line.record.type !== "brig") continue;
    const { name, payload } = line.record;
    if (name === "sandbox") startMs = Number(payload.start_ms);
    if (name === "call") callsMs.push(Number(payload.duration_ms));
  }
  return {
    session_file: path,
    start_ms: startMs,
    tool_calls: callsMs.length,
    median_call_ms: median(callsMs),
  };
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  return ((low ?? 0) + (high ?? 0)) / 2;
}

function figuresText({ session_file, start_ms, tool_calls, median_call_ms }: Figures): string {
  const rows = [
    ["session start", `${start_ms.toFixed(0)} ms, until the container ran and its policy was checked`],
    ["tool calls", `${tool_calls}`],
    ["median call", `${median_call_ms.toFixed(1)} ms, including the work of the commands`],
    ["session file", session_file],
  ];
  return rows.map(([name = "", value]) => `${name.padEnd(15)}${value}\n`).join("");
}
