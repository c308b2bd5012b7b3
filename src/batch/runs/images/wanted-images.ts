import { BrigError } from "../../../errors.js";
import type { BuildingEngine } from "../../../sandbox/index.js";
import { faultsOf } from "../../../sandbox/index.js";
import type { Task, TaskImage } from "../../tasks/task.js";

export interface WantedImage {
  /** The first task that needs it. */
  task: string;
  image: TaskImage;
}

/** The images of these tasks and of their verifiers, each once. */
export function wantedImages(tasks: readonly Task[]): WantedImage[] {
  const wanted = new Map<string, WantedImage>();
  for (const task of tasks) {
    const ofVerifiers = task.steps.flatMap(({ verifier }) => verifier.environment?.image ?? []);
    for (const image of [task.environment.image, ...ofVerifiers]) {
      const key = JSON.stringify(image);
      if (!wanted.has(key)) wanted.set(key, { task: task.name, image });
    }
  }
  return [...wanted.values()];
}

/** Number of faults named in the message. */
const shownFaults = 20;

/**
 * Reads the Dockerfiles of all images. Error: `image.build-failed` that names everything in them that the engine cannot
 * build, before anything is built.
 */
export async function refuseUnbuildable(
  wanted: readonly WantedImage[],
  engine: BuildingEngine,
): Promise<void> {
  const faults: string[] = [];
  for (const { task, image } of wanted)
    if (image.kind === "build")
      for (const fault of await faultsOf(image, engine)) faults.push(`${task}: ${fault}`);
  if (faults.length === 0) return;
  const more = faults.length > shownFaults ? [`and ${faults.length - shownFaults} more`] : [];
  const lines = [...faults.slice(0, shownFaults), ...more].map((line) => `  ${line}`);
  throw new BrigError(["the images of these tasks cannot be built:", ...lines].join("\n"), {
    code: "image.build-failed",
    hint: "change these lines, build the images elsewhere and name them as docker_image, or leave the tasks out with --exclude",
  });
}
