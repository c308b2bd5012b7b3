import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { parseDockerfile } from "../../tasks/dockerfile/parse-dockerfile.js";
import { isPlatformOf } from "../../tasks/dockerfile/platforms.js";
import type { BuiltImage } from "./build-plan.js";
import type { WantedImage } from "./wanted-images.js";

/** Number of faults named in the message. */
const shownFaults = 20;

/**
 * Reads the Dockerfiles of all images. Error: `image.build-failed` that names everything in them that the engine cannot
 * build, before anything is built.
 */
export async function refuseUnbuildable(wanted: readonly WantedImage[], arch: string): Promise<void> {
  const faults: string[] = [];
  for (const { task, image } of wanted)
    if (image.kind === "build")
      for (const fault of await faultsOf(image, arch)) faults.push(`${task}: ${fault}`);
  if (faults.length === 0) return;
  const more = faults.length > shownFaults ? [`and ${faults.length - shownFaults} more`] : [];
  const lines = [...faults.slice(0, shownFaults), ...more].map((line) => `  ${line}`);
  throw new BrigError(["the images of these tasks cannot be built:", ...lines].join("\n"), {
    code: "image.build-failed",
    hint: "change these lines, build the images elsewhere and name them as docker_image, or leave the tasks out with --exclude",
  });
}

async function faultsOf({ context, dockerfile, buildArgs }: BuiltImage, arch: string): Promise<string[]> {
  const text = await readFile(join(context, dockerfile), "utf8");
  const { buildKitFeatures, platforms } = parseDockerfile(text, buildArgs);
  return [
    ...buildKitFeatures.map(({ line, name }) => `${dockerfile}:${line}: ${name} needs BuildKit`),
    ...platforms
      .filter(({ platform }) => !isPlatformOf(platform, arch))
      .map(
        ({ line, platform }) =>
          `${dockerfile}:${line}: it is for ${platform}, and the engine is linux/${arch}`,
      ),
  ];
}
