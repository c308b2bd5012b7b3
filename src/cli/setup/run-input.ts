import { resolve } from "node:path";
import type { CliContext } from "../../command/index.js";
import {
  decodeGiven,
  ENDS_WITH_INPUT,
  noteWait,
  readGivenFile,
  readInput,
  type WaitNotes,
} from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { imageType } from "../../lib/image-type.js";
import { ImageResizer } from "../../tools/index.js";

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

type ImageContext = Pick<CliContext, "cwd" | "signal"> & WaitNotes;

/** Data URLs, reduced in size as `view_image` does it. An entry may name several files, separated by commas. */
export async function readImages(files: readonly string[], context: ImageContext): Promise<string[]> {
  return await readImageFiles(imageFiles(files), context);
}

/** The same for paths, which may have commas in them. */
export async function readImageFiles(
  files: readonly string[],
  { cwd, signal, stderr }: ImageContext,
): Promise<string[]> {
  const resizer = new ImageResizer();
  const given: GivenImage[] = [];
  // Sequentially, so that after a failure nobody waits for another pipe.
  for (const file of files) {
    const path = resolve(cwd, file);
    given.push({ path, bytes: await readGivenFile(path, signal, { stderr }) });
  }
  return await Promise.all(given.map((image) => fitImage(image, resizer)));
}

/** The files that `readImages` reads, in the same order. */
export function imageFiles(lists: readonly string[]): string[] {
  return lists.flatMap((list) => list.split(","));
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
  return decodeGiven(
    await readInput(stdin, { signal, maxBytes: MAX_INPUT_BYTES, tooLong }),
    "standard input",
  );
}

function noPrompt(hint: string): BrigError {
  return invalidUsage("there is no prompt", hint);
}

function usage(message: string, cause?: unknown): BrigError {
  return new BrigError(message, { code: "usage.invalid", cause });
}
