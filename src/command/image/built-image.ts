import type { ProjectBuild } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import { BuildProgress } from "./build-progress.js";

/** The name of the image, which is built unless the engine has it. Shows what is built if that takes long. */
export async function builtImage(
  build: ProjectBuild,
  { environment, signal, stderr }: Pick<CliContext, "environment" | "signal" | "stderr">,
): Promise<string> {
  const { connectEngine, provideProjectImage } = await import("../../sandbox/index.js");
  const engine = await connectEngine({ env: environment });
  using progress = new BuildProgress(stderr, { usesColour: !environment.forbidsColor });
  return await provideProjectImage(engine, build, {
    ...{ brigHome: environment.brigHome, signal },
    onProgress: progress.tell,
  });
}
