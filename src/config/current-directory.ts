import { BrigError } from "../errors.js";

/** Where a process works. Error: `usage.invalid` where somebody has removed that directory since it was entered. */
export function currentDirectory(process: { cwd(): string }): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new BrigError("the current directory is gone: it was removed or renamed", {
      code: "usage.invalid",
      hint: 'enter one that is there, for example with: cd "$HOME"',
      cause,
    });
  }
}
