import { fileURLToPath } from "node:url";
import { execa, type ResultPromise } from "execa";
import { LABELS } from "../../src/sandbox/labels.js";
import { testEngine } from "./engine.js";
import { testRuntime } from "./runtime-differences.js";

/** The built program, as `npm test` compiles it. */
export const program = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

const opensSandbox = ["exec", "shell", "tool", "up"];

export interface BrigOptions {
  cwd?: string;
  /** On top of this process's environment. */
  env?: Record<string, string>;
  /** Given to standard input, then end of file. Default: standard input is empty. */
  input?: string;
  /** Standard input stays open for the test to write to. */
  holdsInputOpen?: boolean;
  /** False for an output that is too long, or read by the test itself. Default true. */
  keepsOutput?: boolean;
}

/** Runs the built program; whatever its exit status, the result is a value. */
export function brig(args: string[], options: BrigOptions = {}): ResultPromise<TextCall> {
  const { cwd, env, input, holdsInputOpen = false, keepsOutput = true } = options;
  return execa(process.execPath, [program, ...onTestRuntime(args)], {
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(input === undefined ? { stdin: holdsInputOpen ? "pipe" : "ignore" } : { input }),
    ...(keepsOutput ? {} : { buffer: { stdout: false } }),
    reject: false,
    stripFinalNewline: false,
  }) as ResultPromise<TextCall>;
}

type TextCall = { reject: false; stripFinalNewline: false; stdin: "pipe" };

/** The arguments for the OCI runtime under test. */
export function onTestRuntime(args: string[]): string[] {
  const [command = "", ...rest] = args;
  if (testRuntime === undefined || !opensSandbox.includes(command) || args.includes("--in")) return args;
  return [command, "--runtime", testRuntime, ...rest];
}

/** The containers of a program that was started here, by its process id. */
export async function containersOf(pid: number | undefined): Promise<string[]> {
  const engine = await testEngine();
  const containers = await engine.listContainers([`${LABELS.ownerPid}=${pid}`]);
  return containers.map(({ id }) => id);
}
