import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import type { Task, TaskSolution } from "../../tasks/task.js";
import { requireUnixScript } from "../place/line-ends.js";
import { uploadDirectory } from "../place/upload-directory.js";
import { runAgentPrograms } from "./agent-output.js";
import type { AgentOutcome, AgentWork, AttemptAgent } from "./attempt-agent.js";

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
