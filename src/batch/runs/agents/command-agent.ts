import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import type { Sandbox } from "../../../sandbox/index.js";
import type { Task, TaskSolution } from "../../tasks/task.js";
import { requireUnixScript } from "../place/prepare-environment.js";
import { uploadDirectory } from "../place/upload-directory.js";
import { type AgentOutcome, type AgentWork, type AttemptAgent, noUsage } from "./attempt-agent.js";

const INSTRUCTION_FILE = "/logs/agent/instruction.md";

/**
 * Any program, started by a shell in the task's container with its input closed. It finds the instruction in the file
 * that `BRIG_INSTRUCTION_FILE` names, and the end of its time, if it has one, in `BRIG_DEADLINE`.
 */
export function commandAgent(command: string): AttemptAgent {
  return {
    name: "command",
    model: null,
    async run(work) {
      const { sandbox, step, deadline, signal } = work;
      await sandbox.files.write(INSTRUCTION_FILE, step.instruction, { signal });
      const env = {
        BRIG_INSTRUCTION_FILE: INSTRUCTION_FILE,
        ...(deadline !== null && { BRIG_DEADLINE: deadline.toISOString() }),
      };
      return await runAgentPrograms(work, [["/bin/sh", "-c", command]], { env });
    },
  };
}

const SOLUTION_DIRECTORY = "/solution";
const PATCH_FILE = "/tmp/brig-solution.diff";

/**
 * Does what the task's own solution says. Its reward is what a task must be able to give. Error: `usage.invalid` for a task without
 * one, whose reward would say nothing.
 */
export function oracleAgent(): AttemptAgent {
  return {
    name: "oracle",
    model: null,
    run: async (work) => {
      const { solution } = work.step;
      // The solution of this step is of no use if a later step has none.
      if (solution === null || work.task.steps.some((step) => step.solution === null))
        throw noSolution(work.task);
      return await solve(work, solution);
    },
  };
}

async function solve(work: AgentWork, solution: TaskSolution): Promise<AgentOutcome> {
  const { sandbox } = work;
  switch (solution.kind) {
    case "script": {
      await requireUnixScript(join(solution.directory, solution.script));
      await uploadDirectory(sandbox, solution.directory, {
        to: SOLUTION_DIRECTORY,
        executable: [solution.script],
      });
      const argv = ["/bin/sh", "-c", 'exec "$0"', `${SOLUTION_DIRECTORY}/${solution.script}`];
      return await runAgentPrograms(work, [argv], { env: solution.env });
    }
    case "commands":
      return await runAgentPrograms(
        work,
        solution.commands.map((command) => ["/bin/bash", "-c", command]),
      );
    case "patch":
      await sandbox.files.write(PATCH_FILE, solution.patch);
      return await runAgentPrograms(work, [["/bin/sh", "-c", APPLY, PATCH_FILE]]);
    default:
      return solution satisfies never;
  }
}

/** The commands of SWE-bench's own harness, in its order. */
const APPLY = `
git apply --verbose "$0" && exit 0
git apply --verbose --3way "$0" && exit 0
git checkout -- . && git clean -fd
git apply --verbose --reject "$0" && exit 0
git checkout -- . && git clean -fd
patch --batch --forward --fuzz=5 -p1 -i "$0"`;

function noSolution({ name, steps }: Task): BrigError {
  const of = steps.length === 1 ? "the task" : "a step of the task";
  return new BrigError(`${of} ${name} has no solution`, {
    code: "usage.invalid",
    hint: "the agent oracle is for tasks that have one: leave this task out with --exclude",
  });
}

/** Does nothing. A task whose tests pass all the same is broken. */
export function nopAgent(): AttemptAgent {
  return {
    name: "nop",
    model: null,
    run: async () => ({ ending: "not-run", message: null, usage: noUsage, files: {} }),
  };
}

const AGENT_OUTPUT = "agent-output.txt";
const LAST_WORDS_BYTES = 4096;

/**
 * Runs programs of an agent one after the other until one fails, with their input closed, and keeps a bounded part of
 * their output in the folder.
 */
async function runAgentPrograms(
  { sandbox, cwd, folder, signal }: Pick<AgentWork, "sandbox" | "cwd" | "folder" | "signal">,
  programs: readonly (readonly string[])[],
  { env = {} }: { env?: Readonly<Record<string, string>> } = {},
): Promise<AgentOutcome> {
  await using log = await BoundedLog.create(join(folder, AGENT_OUTPUT));
  const files = { agentOutput: AGENT_OUTPUT };
  for (const argv of programs) {
    const { exitCode, output } = await runProgram(sandbox, argv, { cwd, env, signal, log });
    if (exitCode !== 0)
      return { ending: "failed", message: `exit code ${exitCode}: ${output.trim()}`, usage: noUsage, files };
  }
  return { ending: "completed", message: null, usage: noUsage, files };
}

async function runProgram(
  sandbox: Sandbox,
  argv: readonly string[],
  {
    log,
    ...options
  }: { cwd: string; env: Readonly<Record<string, string>>; signal: AbortSignal; log: BoundedLog },
) {
  const result = await sandbox.exec(argv, {
    ...options,
    maxOutputBytes: LAST_WORDS_BYTES,
    onStdout: log.write,
    onStderr: log.write,
  });
  await log.written();
  return result;
}

const LOG_MAX_BYTES = 16 * 1024 * 1024;

/** A file of the host that takes the output of a command, up to a limit. The end says how much was left out. */
export class BoundedLog implements AsyncDisposable {
  readonly #file: FileHandle;
  #leftBytes: number;
  #omittedBytes = 0;
  #written = Promise.resolve();

  private constructor(file: FileHandle, maxBytes: number) {
    this.#file = file;
    this.#leftBytes = maxBytes;
  }

  static async create(path: string, { maxBytes = LOG_MAX_BYTES } = {}): Promise<BoundedLog> {
    return new BoundedLog(await open(path, "w", 0o600), maxBytes);
  }

  /** Writes in the order of the calls. */
  readonly write = (chunk: Uint8Array): Promise<void> => {
    this.#written = this.#written.then(() => this.#append(chunk));
    return this.#written;
  };

  /** Error: that of the first call of `write` that failed. */
  async written(): Promise<void> {
    await this.#written;
  }

  async #append(chunk: Uint8Array): Promise<void> {
    const kept = chunk.subarray(0, this.#leftBytes);
    this.#leftBytes -= kept.length;
    this.#omittedBytes += chunk.length - kept.length;
    if (kept.length > 0) await this.#file.appendFile(kept);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#written.catch(() => undefined);
    if (this.#omittedBytes > 0)
      await this.#file.appendFile(`\n[${this.#omittedBytes} more bytes were left out]\n`);
    await this.#file.close();
  }
}
