import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";

/** Instructions are sent with every request, so longer ones are a mistake. */
const MAX_INSTRUCTIONS_BYTES = 256 * 1024;

/**
 * Reads the base instructions from `model_instructions_file` or `--instructions-file`. A file that is
 * missing, empty, longer than 256 KiB, not text, or not a regular file is `config.invalid`.
 */
export async function readInstructionsFile(path: string): Promise<string> {
  const file = await readTextFile(path, MAX_INSTRUCTIONS_BYTES);
  if (file.kind === "missing") throw wrongInstructions(path, "does not exist");
  if (file.kind === "unreadable") throw wrongInstructions(path, file.reason, file.cause);
  if (file.text.trim() === "") throw wrongInstructions(path, "is empty");
  return file.text;
}

function wrongInstructions(path: string, what: string, cause?: unknown): BrigError {
  return new BrigError(`the instructions file ${path} ${what}`, {
    code: "config.invalid",
    hint: "name a text file with the model's base instructions, or leave model_instructions_file out",
    cause,
  });
}
