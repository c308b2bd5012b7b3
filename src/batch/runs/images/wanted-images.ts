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
