import type { Task } from "../../../batch/index.js";
import { rowSchema, taskOfRow } from "../../../batch/index.js";
import { BrigError } from "../../../errors.js";
import type { EpisodeOptions } from "../wire/episode-schemas.js";
import { taskNamed } from "./attempts.js";

/** The task that a client names, or makes of an instruction. Errors: `serve.unknown`, `usage.invalid`. */
export function episodeTask(
  { task: name, instruction, image, check }: EpisodeOptions,
  { tasks, image: usualImage }: { tasks: readonly Task[]; image: string },
): Task {
  if (name !== undefined) {
    if (instruction === undefined && image === undefined && check === undefined)
      return taskNamed(name, tasks);
    throw invalid("a task has its own instruction, image and check");
  }
  if (instruction === undefined || check === undefined)
    throw invalid("an episode needs either a task, or an instruction and a check");
  const row = rowSchema.safeParse({ prompt: instruction, check, image: image ?? usualImage });
  if (!row.success) throw invalid("the instruction is empty");
  return taskOfRow(row.data, {
    name: "instruction",
    source: "a request",
    env: {},
    workspace: null,
    files: [],
    network: { mode: "no-network", allowedHosts: [] },
  });
}

function invalid(message: string): BrigError {
  return new BrigError(message, { code: "usage.invalid", hint: "GET /openapi.json describes all requests" });
}
