import { BrigError } from "../errors.js";

/** Error: `usage.invalid` if the current directory has been removed. */
export function currentDirectory(process: { cwd(): string }): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new BrigError("the current directory is gone: it was removed or renamed", {
      code: "usage.invalid",
      hint: 'change to another directory, for example with: cd "$HOME"',
      cause,
    });
  }
}
