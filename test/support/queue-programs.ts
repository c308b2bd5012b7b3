import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import { program } from "./cli.js";

type ProgramEvent = { type: string; [field: string]: unknown };

/** A program of brig that prints events. */
export interface EventProgram {
  child: ChildProcess;
  events: ProgramEvent[];
  /** Its exit status; null for one that was killed. */
  ended: Promise<number | null>;
  /** Resolves when it has printed an event of this type. */
  has(type: string): Promise<void>;
  /** What it has printed for people. */
  errors(): string;
}

/** Starts a program of brig with `--json`. It is killed at the end of the test, if it has not ended. */
export function startProgram(
  args: readonly string[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): EventProgram {
  const child = spawn(process.execPath, [program, ...args, "--json"], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const events: ProgramEvent[] = [];
  let errors = "";
  createInterface({ input: child.stdout }).on("line", (line) => events.push(JSON.parse(line)));
  child.stderr.on("data", (text) => {
    errors += text;
  });
  const ended = new Promise<number | null>((resolve) => {
    child.on("close", resolve);
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const has = async (type: string) => await expect.poll(() => events.map((one) => one.type)).toContain(type);
  return { child, events, ended, has, errors: () => errors };
}
