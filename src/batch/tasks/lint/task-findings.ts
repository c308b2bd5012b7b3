import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseDockerfile } from "../dockerfile/parse-dockerfile.js";
import type { Task, TaskImage } from "../task.js";
import type { LintFinding } from "./finding.js";

/** Reasons for which brig cannot run a task of any format, although it can be read. */
export async function taskFindings(task: Task): Promise<LintFinding[]> {
  const images = [task.environment, ...task.steps.flatMap(({ verifier }) => verifier.environment ?? [])];
  const unique = new Map(images.map(({ image }) => [JSON.stringify(image), image]));
  const unbuildable = await Promise.all([...unique.values()].map((image) => dockerfileFindings(task, image)));
  return unbuildable.flat();
}

async function dockerfileFindings({ source }: Task, image: TaskImage): Promise<LintFinding[]> {
  if (image.kind !== "build") return [];
  const path = join(image.context, image.dockerfile);
  const { buildKitFeatures } = parseDockerfile(await readFile(path, "utf8"), image.buildArgs);
  const file = relative(source, path);
  return buildKitFeatures.map(({ line, name }) => ({
    rule: "needs-buildkit",
    level: "error",
    source,
    file: file.startsWith("..") ? null : file,
    message: `line ${line}: ${name} needs BuildKit, and brig builds with the engine's classic builder`,
    hint: null,
  }));
}
