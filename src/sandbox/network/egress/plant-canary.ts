import { BrigError } from "../../../errors.js";
import type { RunnerLink } from "../../channel/runner-link.js";
import { writeFile } from "../../files/files.js";
import type { CommandContext } from "../../process/command.js";

/** Error: `usage.invalid` for a file that cannot be written in this sandbox. */
export async function plantFile(
  link: RunnerLink,
  { name, path, text }: { name: string; path: string; text: string },
): Promise<void> {
  const context: CommandContext = { link, cwd: "/", env: {}, onStuck: () => undefined };
  try {
    await writeFile(context, { path, data: text, mode: 0o600 });
  } catch (cause) {
    throw new BrigError(`the canary ${name} cannot be written to ${path}`, {
      code: "usage.invalid",
      hint: "name a file in a directory that exists and that commands may write to",
      cause,
    });
  }
}
