import { BrigError } from "../../errors.js";
import { decodeGiven, readGivenFile, type WaitNotes } from "../given-file.js";

export async function readOutputSchema(
  path: string,
  signal: AbortSignal,
  notes: WaitNotes = {},
): Promise<Record<string, unknown>> {
  const text = decodeGiven(await readGivenFile(path, signal, notes), `the output schema ${path}`);
  try {
    const schema: unknown = JSON.parse(text);
    if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return { ...schema };
  } catch (cause) {
    throw usage(
      `the output schema ${path} is not JSON: ${cause instanceof Error ? cause.message : ""}`,
      cause,
    );
  }
  throw usage(`the output schema ${path} is not a JSON object`);
}

function usage(message: string, cause?: unknown): BrigError {
  return new BrigError(message, { code: "usage.invalid", cause });
}
