import type { RunImages, Task, WantedImage } from "../../../batch/index.js";
import { refuseUnbuildable, wantedImages } from "../../../batch/index.js";
import { BrigError } from "../../../errors.js";
import { Estimate } from "../../../lib/time/estimate.js";
import type { Engine } from "../../../sandbox/index.js";

/**
 * Checks all images before anything runs. Errors: `image.missing` with all images that would have to be pulled although
 * nothing may be pulled; `image.build-failed` with all images that cannot be built.
 */
export async function requireImages(
  tasks: readonly Task[],
  { images, engine }: { images: RunImages; engine: Engine },
): Promise<void> {
  const wanted = wantedImages(tasks);
  await refuseUnbuildable(wanted, engine);
  await images.requireLocal(wanted.map(({ image }) => image));
}

/** Builds or pulls all images. Error: `image.build-failed` with all images that failed. */
export async function prebuild(
  wanted: readonly WantedImage[],
  images: RunImages,
  { onReady, signal }: { onReady: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  const estimate = new Estimate("steps", performance.now());
  let settled = 0;
  const failed = await images.prebuild(wanted, {
    signal,
    onSettled: (outcome) => {
      settled++;
      const now = performance.now();
      estimate.update({ done: settled, total: wanted.length }, now);
      const fate = "error" in outcome ? "failed" : "is ready";
      onReady(`the image of ${outcome.task} ${fate} (${estimate.text(now)})`);
    },
  });
  if (failed.length === 0) return;
  const lines = failed.map(
    ({ task, error }) => `  ${task}: ${error instanceof Error ? error.message : String(error)}`,
  );
  throw new BrigError(["the images of these tasks cannot be made ready:", ...lines].join("\n"), {
    code: "image.build-failed",
    hint: "mend them, or leave the tasks out with --exclude",
    cause: failed[0]?.error,
  });
}
