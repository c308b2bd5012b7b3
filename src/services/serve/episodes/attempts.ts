import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type {
  Attempt,
  AttemptAgent,
  AttemptLimits,
  AttemptStage,
  Task,
  TaskImages,
} from "../../../batch/index.js";
import { refuseUnsupported } from "../../../batch/index.js";
import { BrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import type { Engine } from "../../../sandbox/index.js";

/** What the attempts of the service have in common. */
export interface AttemptPlace {
  tasks: readonly Task[];
  images: TaskImages;
  engine: Engine;
  environment: Environment;
  runtime: string | undefined;
  /** Each attempt has a folder of its own in it. */
  directory: string;
}

/** Error: `serve.unknown`; `usage.invalid` if several tasks end in this name, or if no attempt could give what it needs. */
export function taskNamed(name: string, tasks: readonly Task[]): Task {
  const exact = tasks.find((task) => task.name === name);
  const ending = exact === undefined ? tasks.filter((task) => task.name.split("/").at(-1) === name) : [exact];
  const [task] = ending;
  if (task === undefined)
    throw new BrigError(`the service has no task ${JSON.stringify(name)}`, {
      code: "serve.unknown",
      hint: "GET /v1/tasks lists those that it was started with",
    });
  if (ending.length > 1)
    throw new BrigError(`the tasks ${ending.map((one) => one.name).join(" and ")} both end in ${name}`, {
      code: "usage.invalid",
      hint: "give the whole name",
    });
  refuseUnsupported(task);
  return task;
}

/** An attempt with a new folder. */
export async function newAttempt(
  place: AttemptPlace,
  {
    task,
    agent,
    limits = {},
    signal,
    onStage,
  }: {
    task: Task;
    agent: AttemptAgent;
    limits?: AttemptLimits;
    signal: AbortSignal;
    onStage?: (stage: AttemptStage) => void;
  },
): Promise<Attempt> {
  const { images, engine, environment, runtime, directory } = place;
  const folder = join(directory, randomBytes(16).toString("hex"));
  await mkdir(folder);
  return { task, attempt: 1, agent, images, engine, environment, runtime, folder, limits, signal, onStage };
}
