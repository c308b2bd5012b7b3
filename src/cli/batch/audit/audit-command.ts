import type { Command } from "commander";
import type { CliContext } from "../../../command/index.js";
import { addLimitOptions, collect } from "../../../command/index.js";
import { atLeastOne } from "../batch-flags.js";
import type { AuditFlags } from "./audit.js";

export function defineAudit(command: Command, context: CliContext): void {
  addLimitOptions(command, "what the task asks for")
    .description("try known attacks on graders against tasks, and say which of them succeed")
    .argument("[paths...]", "tasks, directories of tasks, or files of rows")
    .option(
      "--attack <name>",
      "try only attacks of this name, which may contain * and ?; may be repeated",
      collect,
    )
    .option("--task <pattern>", "audit only tasks of this name; may be repeated", collect)
    .option("--exclude <pattern>", "leave out tasks of this name; may be repeated", collect)
    .option("--skip-unusable", "leave out tasks that cannot be used, instead of auditing none")
    .option("-n, --concurrency <number>", "attempts at a time (default: by the machine)", atLeastOne)
    .option("--runtime <name>", "the OCI runtime of the containers (default: the engine's)")
    .option("--offline", "pull nothing; fail at once if an image is missing")
    .option("--list", "only list the attacks, and what each tries")
    .option("--json", "print what each attempt scored as JSON")
    .addHelpText("after", help)
    .action(async (paths: string[], flags: AuditFlags) => {
      const { audit } = await import("./audit.js");
      await audit(paths, flags, context);
    });
}

const help = `
Each task is tried by an agent that does nothing, by its own solution, and by each attack in a container of its own, with the task's
real tests. An attack whose needs a container lacks, such as a repository, is not possible there, and is not graded.
Exit status: 0 if of each task nothing and no attack scores and the solution does, 1 if not, 2 for bad usage, 125 without an engine.`;
