import type { TreeEntry } from "../files/task-tree.js";
import { TaskNotes } from "../notes/task-notes.js";
import type { LintStep, Remark } from "./finding.js";

/** Smaller files are equal by chance. */
const LEAST_BYTES = 40;

/** Dockerfiles that copy the tests or the solution into the image of the agent. */
export function copiedGraders({ tree, task }: LintStep): Remark[] {
  const { image } = task.environment;
  if (tree === null || image.kind !== "build") return [];
  const file = `${image.context.slice(tree.root.length + 1)}/${image.dockerfile}`;
  const text = tree.text(file, new TaskNotes(task.source)) ?? "";
  return copiedSources(text)
    .filter((source) => /(?:^|\/)(?:tests|solution|solve\.sh|test\.sh|test_outputs\.py)\/?$/.test(source))
    .map((source) => ({ file, message: `it copies ${source} into the image, where the agent can read it` }));
}

/** Scripts of the tests, and anything of the solution, that also lie in the environment. */
export function gradersInEnvironment({ tree, testsFolder, solutionFolder }: LintStep): Remark[] {
  if (tree === null) return [];
  const graders = new Map<string, string>();
  for (const folder of [testsFolder, solutionFolder]) {
    for (const entry of folder === null ? [] : tree.below(folder))
      if (isFile(entry) && (folder === solutionFolder || isProgram(entry.path)))
        graders.set(entry.sha256, entry.path);
  }
  return tree
    .below("environment")
    .filter(isFile)
    .flatMap(({ path, sha256 }) => {
      const grader = graders.get(sha256);
      return grader === undefined
        ? []
        : [{ file: path, message: `it is the same as ${grader}, which the agent must not see` }];
    });
}

function isFile(entry: TreeEntry): entry is TreeEntry & { kind: "file" } {
  return entry.kind === "file" && entry.bytes >= LEAST_BYTES;
}

function isProgram(path: string): boolean {
  return /\.(?:sh|bash|py|js|mjs|ts|rb|pl|go|rs|c|cc|cpp|java)$/.test(path);
}

/** Sources in the build context of COPY and ADD. */
function copiedSources(dockerfile: string): string[] {
  const lines = dockerfile
    .replace(/^\s*#.*\n?/gm, "")
    .replace(/\\[ \t]*\n/g, " ")
    .split("\n");
  return lines.flatMap((line) => {
    const [, rest] = /^\s*(?:COPY|ADD)\s+(.*)$/i.exec(line) ?? [];
    if (rest === undefined || /(?:^|\s)--from=/.test(rest)) return [];
    return rest
      .replace(/^(?:--\S+\s+)+/, "")
      .replace(/^\[|\]$|[",]/g, " ")
      .trim()
      .split(/\s+/)
      .slice(0, -1);
  });
}
