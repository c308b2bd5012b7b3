import { join } from "node:path";
import type { Sandbox } from "../../../sandbox/index.js";
import { BoundedLog } from "../grading/bounded-log.js";
import type { AgentOutcome, AgentWork } from "./attempt-agent.js";
import { noUsage } from "./no-usage.js";

const AGENT_OUTPUT = "agent-output.txt";
const LAST_WORDS_BYTES = 4096;

/**
 * Runs programs of an agent one after the other until one fails, with their input closed, and keeps a bounded part of
 * their output in the folder.
 */
export async function runAgentPrograms(
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
  let written = Promise.resolve();
  const write = (chunk: Uint8Array) => {
    const copy = Buffer.from(chunk);
    written = written.then(() => log.write(copy));
    return written;
  };
  const result = await sandbox.exec(argv, {
    ...options,
    maxOutputBytes: LAST_WORDS_BYTES,
    onStdout: write,
    onStderr: write,
  });
  await written;
  return result;
}
