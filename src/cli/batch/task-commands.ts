import { relative, resolve } from "node:path";
import type { Command } from "commander";
import type { LintFinding } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write, writeJson, writeTable } from "../../command/index.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";

export function defineLint(command: Command, context: CliContext): void {
  command
    .description("check tasks for what lets an agent cheat, or makes grades depend on chance")
    .argument("<paths...>", "tasks, directories of tasks, or files of rows")
    .option("--json", "print the findings as JSON")
    .action(async (paths: string[], { json }: { json?: boolean }) => {
      const { lintTasks } = await import("../../batch/index.js");
      const { cwd, environment, signal, stdout } = context;
      const report = await lintTasks(paths, { cwd, variables: environment.variables, signal });
      const count = (level: string) => report.findings.filter((finding) => finding.level === level).length;
      const counts = { tasks: report.tasks, errors: count("error"), warnings: count("warning") };
      if (json === true) await writeJson(stdout, { ...counts, findings: report.findings });
      else {
        if (report.findings.length > 0) await writeTable(stdout, rowsOf(report.findings, cwd));
        await write(
          stdout,
          `${plural(counts.tasks, "task")}, ${plural(counts.errors, "error")}, ${plural(counts.warnings, "warning")}\n`,
        );
      }
      if (counts.errors > 0) context.setExitStatus(1);
    });
}

function rowsOf(findings: readonly LintFinding[], cwd: string): string[][] {
  const rows = findings.map(({ level, rule, source, file, message, hint }) => [
    level,
    rule,
    shortest(file === null ? source : `${source}/${file}`, cwd),
    hint === null ? message : `${message} (${hint})`,
  ]);
  return [["LEVEL", "RULE", "WHERE", "WHAT"], ...rows];
}

function shortest(path: string, cwd: string): string {
  const way = relative(cwd, path);
  return way === "" ? "." : way.length < path.length ? way : path;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export function defineInit(command: Command, context: CliContext): void {
  command
    .description("write a small, complete task to begin with")
    .argument("<dir>", "a directory that is empty or does not exist; its name is the task's")
    .action(async (directory: string) => {
      const { initTask } = await import("../../batch/index.js");
      const files = await initTask(resolve(context.cwd, directory));
      await write(context.stdout, files.map((file) => `${visibleLine(`${directory}/${file}`)}\n`).join(""));
      await say(context.stderr, `check it with: brig batch lint ${visibleLine(directory)}\n`);
    });
}
