import { runAgentPrograms } from "./agent-output.js";
import type { AttemptAgent } from "./attempt-agent.js";

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
