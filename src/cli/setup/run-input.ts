import { resolve } from "node:path";
import { BrigError } from "../../errors.js";
import { imageType } from "../../lib/image-type.js";
import { decodeMarked } from "../../lib/utf8.js";
import { ImageResizer } from "../../tools/index.js";
import type { CliContext } from "../context.js";
import { ENDS_WITH_INPUT, noteWait, readInput } from "../streams.js";
import { readGivenFile, type WaitNotes } from "./given-file.js";

const MAX_INPUT_BYTES = 64 * 1024 * 1024;
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;

/** The argument, unless it is missing or `-`, followed by standard input, unless standard input is a terminal. */
export async function readPrompt(argument: string | undefined, context: CliContext): Promise<string> {
  const { stdin } = context;
  const isFromInput = argument === undefined || argument === "-";
  if (!isFromInput && argument.trim() === "")
    throw noPrompt("the argument is empty; say in it what to do, or leave it out and pipe the prompt in");
  if (stdin.isTTY === true) {
    if (!isFromInput) return argument;
    throw noPrompt("give one as an argument, or pipe it in");
  }
  if (!isFromInput) {
    const more = (await readText(context, "reading more from standard input")).trim();
    return more === "" ? argument : `${argument}\n\n<stdin>\n${more}\n</stdin>`;
  }
  const prompt = await readText(context, "reading the prompt from standard input");
  if (prompt.trim() === "")
    throw noPrompt("standard input is empty; pipe the prompt in, or give it as an argument");
  return prompt;
}

/** Data URLs, reduced in size as `view_image` does it. An entry may name several files, separated by commas. */
export async function readImages(
  files: readonly string[],
  { cwd, signal, stderr }: Pick<CliContext, "cwd" | "signal"> & WaitNotes,
): Promise<string[]> {
  const resizer = new ImageResizer();
  const given: GivenImage[] = [];
  // Sequentially, so that after a failure nobody waits for another pipe.
  for (const file of files.flatMap((list) => list.split(","))) {
    const path = resolve(cwd, file);
    given.push({ path, bytes: await readGivenFile(path, signal, { stderr }) });
  }
  return await Promise.all(given.map((image) => fitImage(image, resizer)));
}

export async function readOutputSchema(
  path: string,
  signal: AbortSignal,
  notes: WaitNotes = {},
): Promise<Record<string, unknown>> {
  const text = decode(await readGivenFile(path, signal, notes), `the output schema ${path}`);
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

interface GivenImage {
  path: string;
  bytes: Buffer;
}

async function fitImage({ path, bytes }: GivenImage, resizer: ImageResizer): Promise<string> {
  if (imageType(bytes) === null) throw usage(`${path} is not a PNG, JPEG, GIF or WebP image`);
  const image = await resizer.fit(bytes);
  if (image.kind === "unusable") throw usage(`the image ${path} cannot be used: ${image.reason}`);
  if (image.bytes.length > MAX_IMAGE_BYTES)
    throw usage(`the image ${path} is larger than ${MAX_IMAGE_BYTES} bytes`);
  return `data:${image.type};base64,${image.bytes.toString("base64")}`;
}

async function readText(context: CliContext, awaited: string): Promise<string> {
  using _ = noteWait(context.stderr, { awaited, hint: ENDS_WITH_INPUT });
  const { stdin, signal } = context;
  const tooLong = () => usage(`standard input is larger than ${MAX_INPUT_BYTES} bytes`);
  return decode(await readInput(stdin, { signal, maxBytes: MAX_INPUT_BYTES, tooLong }), "standard input");
}

function decode(bytes: Uint8Array, name: string): string {
  try {
    return decodeMarked(bytes);
  } catch (cause) {
    throw usage(`${name} is not text in UTF-8 or UTF-16`, cause);
  }
}

function noPrompt(hint: string): BrigError {
  return new BrigError("there is no prompt", { code: "usage.invalid", hint });
}

function usage(message: string, cause?: unknown): BrigError {
  return new BrigError(message, { code: "usage.invalid", cause });
}
