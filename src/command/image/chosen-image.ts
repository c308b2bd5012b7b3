import { resolve } from "node:path";
import type { Command } from "commander";
import { invalidUsage } from "../../errors.js";
import type { CliContext } from "../context.js";
import type { SandboxFlags } from "../flags/sandbox-flags.js";
import { builtImage } from "./built-image.js";

/**
 * Builds the image that the flags describe, and leaves its name in `--container-image`, as if that had been given. Errors:
 * `usage.invalid`, `config.invalid`, `image.build-failed`, those of the engine.
 */
export async function chooseImage(command: Command, context: CliContext): Promise<void> {
  const flags = command.opts<SandboxFlags & { in?: string }>();
  // Refused by the command itself: that sandbox is open already.
  if (flags.in !== undefined) return;
  refuseTwo(flags);
  if (flags.devcontainer === true) {
    const { applyDevcontainer } = await import("./apply-devcontainer.js");
    return await applyDevcontainer(command, context);
  }
  const { buildOfDockerfile } = await import("../../sandbox/index.js");
  const path = resolve(context.cwd, flags.dockerfile ?? flags.containerImage ?? "");
  command.setOptionValue("containerImage", await builtImage(await buildOfDockerfile(path), context));
}

function refuseTwo({ dockerfile, devcontainer, containerImage }: SandboxFlags): void {
  const given = [
    ...(dockerfile === undefined ? [] : ["--dockerfile"]),
    ...(devcontainer === true ? ["--devcontainer"] : []),
    ...(containerImage === undefined ? [] : ["--container-image"]),
  ];
  if (given.length > 1)
    throw invalidUsage(`${given.join(" and ")} both name the image`, "leave out one of them");
}

/** What another process needs to be given besides the arguments, in order not to build the image itself. */
export function chosenAsArguments(command: Command): string[] {
  if (!command.opts().containerImage || command.getOptionValueSource("containerImage") === "cli") return [];
  const { containerImage, setup } = command.opts<SandboxFlags>();
  return ["--container-image", String(containerImage), ...(setup === undefined ? [] : ["--setup", setup])];
}
