import { readFile } from "node:fs/promises";
import { BrigError } from "../../../errors.js";
import { hasCarriageReturn } from "../../tasks/values/line-ends.js";

/** Whether a script was written with the line ends of Windows, with which no shell of Linux can run it. */
export function isSpoilt(script: Buffer): boolean {
  return hasCarriageReturn(script.subarray(0, FIRST_LINE_BYTES).toString("latin1"));
}

const FIRST_LINE_BYTES = 4096;

export function spoiltScript(path: string): BrigError {
  return new BrigError(`${path} cannot be run: its lines end with carriage returns, as on Windows`, {
    code: "usage.invalid",
    hint: "save it with the line ends of Unix; in a repository, .gitattributes can say *.sh text eol=lf",
  });
}

/** Refuses a script of the host with the line ends of Windows. Errors: `usage.invalid`, those of the file system. */
export async function requireUnixScript(path: string): Promise<void> {
  if (isSpoilt(await readFile(path))) throw spoiltScript(path);
}
