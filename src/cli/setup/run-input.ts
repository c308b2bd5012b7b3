import { resolve } from "node:path";
import { BrigError } from "../../errors.js";
import { imageType } from "../../lib/image-type.js";
import { ImageResizer } from "../../tools/picture/image-resizer.js";
import type { CliContext } from "../context.js";
import { say } from "../render.js";
import { readGivenFile } from "./given-file.js";

const MAX_INPUT_BYTES = 64 * 1024 * 1024;
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;

/**
 * The prompt: the argument; or standard input where there is none or it is `-`; or both, when something is piped in beside the
 * argument.
 */
export async function readPrompt(argument: string | undefined, context: CliContext): Promise<string> {
  const { stdin, stderr } = context;
  const isFromInput = argument === undefined || argument === "-";
  if (!isFromInput && argument.trim() === "") throw noPrompt("the argument is empty");
  if (stdin.isTTY === true) {
    if (!isFromInput) return argument;
    throw noPrompt("give one as an argument, or pipe it in");
  }
  if (!isFromInput) {
    const more = (
      await readInput(context, () => say(stderr, "brig: reading more from standard input\n"))
    ).trim();
    return more === "" ? argument : `${argument}\n\n<stdin>\n${more}\n</stdin>`;
  }
  const prompt = await readInput(context);
  if (prompt.trim() === "") throw noPrompt("standard input is empty");
  return prompt;
}

/**
 * Pictures as data URLs, made to fit as `view_image` does; several files may be given in one argument, separated by commas.
 */
export async function readImages(
  files: readonly string[],
  { cwd, signal }: Pick<CliContext, "cwd" | "signal">,
): Promise<string[]> {
  const resizer = new ImageResizer();
  const given: GivenImage[] = [];
  // One after the other: no pipe is waited for any more once something is wrong.
  for (const file of files.flatMap((list) => list.split(","))) {
    const path = resolve(cwd, file);
    given.push({ path, bytes: await readGivenFile(path, signal) });
  }
  return await Promise.all(given.map((image) => fitImage(image, resizer)));
}

/** A JSON Schema from a file. */
export async function readOutputSchema(path: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const text = (await readGivenFile(path, signal)).toString("utf8");
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
  if (imageType(bytes) === null) throw usage(`${path} is not a PNG, JPEG, GIF or WebP picture`);
  const picture = await resizer.fit(bytes);
  if (picture.kind === "unusable") throw usage(`the picture ${path} cannot be used: ${picture.reason}`);
  if (picture.bytes.length > MAX_IMAGE_BYTES)
    throw usage(`the picture ${path} is larger than ${MAX_IMAGE_BYTES} bytes`);
  return `data:${picture.type};base64,${picture.bytes.toString("base64")}`;
}

/** `onWait` is told when input does not come at once, so that nobody wonders what is being waited for. */
async function readInput({ stdin, signal }: CliContext, onWait?: () => Promise<void>): Promise<string> {
  signal.throwIfAborted();
  const timer = setTimeout(() => void onWait?.(), 1000);
  const stop = () => {
    stdin.destroy();
  };
  signal.addEventListener("abort", stop, { once: true });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stdin as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > MAX_INPUT_BYTES) throw usage(`standard input has more than ${MAX_INPUT_BYTES} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
  return decode(Buffer.concat(chunks));
}

/** UTF-8 or UTF-16 by its byte order mark, else UTF-8. */
function decode(bytes: Buffer): string {
  const [first, second] = bytes;
  const encoding =
    first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch (cause) {
    throw usage("standard input is not text in UTF-8 or UTF-16", cause);
  }
}

function noPrompt(hint: string): BrigError {
  return new BrigError("there is no prompt", { code: "usage.invalid", hint });
}

function usage(message: string, cause?: unknown): BrigError {
  return new BrigError(message, { code: "usage.invalid", cause });
}
