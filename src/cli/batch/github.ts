import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Summary, Task } from "../../batch/index.js";
import { annotations, jobSummary, readResults, runFiles } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write } from "../../command/index.js";
import { errnoOf } from "../../lib/errno.js";
import { neutralise } from "../../lib/terminal/terminal.js";

interface GithubReport {
  folder: string;
  tasks: readonly Task[];
  /** Whether to report. Undefined means only in a job of GitHub Actions. */
  isAskedFor: boolean | undefined;
}

/** Annotates the tasks that did not pass, and adds to the summary of the job. A failure to report does not fail the run. */
export async function reportToGithub(
  summary: Summary,
  { folder, tasks, isAskedFor }: GithubReport,
  { environment, cwd, stderr, essentialStderr }: CliContext,
): Promise<void> {
  const { GITHUB_ACTIONS, GITHUB_WORKSPACE, GITHUB_STEP_SUMMARY } = environment.variables;
  if (!(isAskedFor ?? GITHUB_ACTIONS === "true")) return;
  const results = readResults(join(folder, runFiles.results));
  const lines = await annotations(results, { tasks, workspace: GITHUB_WORKSPACE ?? cwd });
  // The runner reads commands on stderr, too, and stdout may be for --json.
  for (const line of lines) await write(essentialStderr, `${neutralise(line)}\n`);
  if (GITHUB_STEP_SUMMARY === undefined) return;
  try {
    await appendFile(GITHUB_STEP_SUMMARY, jobSummary(summary));
  } catch (error) {
    await say(stderr, `brig: the job summary could not be written: ${errnoOf(error) ?? "unknown error"}\n`);
  }
}
