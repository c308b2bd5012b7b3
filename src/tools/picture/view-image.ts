import { z } from "zod";
import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { answer } from "../answer.js";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { absolutePath } from "../files/file-path.js";
import { requireInput } from "../files/require-input.js";
import { fileFailure } from "../os-error.js";
import type { Tool, ToolCallOptions, ToolOutput } from "../tool.js";
import type { SandboxAccess, WorkingDirectory } from "../tool-needs.js";
import type { ToolFiles } from "../tool-sandbox.js";
import { type FittedPicture, PictureFitter } from "./picture-fitter.js";

/** What goes into one request with room to spare. */
const MAX_SHOWN_BYTES = 20 * 1024 * 1024;
/** Of a picture that is made to fit. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

const parameters = z.object({
  path: z
    .string()
    .describe("Path of a PNG, JPEG, GIF or WebP file; a relative one starts from the session's directory."),
  detail: z
    .string()
    .optional()
    .describe(
      "`original` for a picture larger than 2048 pixels a side to be seen as it is, where you can take that; else `high`, the default.",
    ),
});

export interface ViewImageNeeds extends SandboxAccess, WorkingDirectory {
  /** Whether the model takes pictures in their original size; null where that is not known, and a call says what it wants. */
  readonly takesOriginalPictures: boolean | null;
}

export function viewImageTool(needs: ViewImageNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  const fitter = new PictureFitter();
  return defineTool({
    name: "view_image",
    description: "Shows you a picture from the file system.",
    parameters,
    supportsParallel: true,
    run: (args, call) => answer(() => viewImage({ ...needs, fitter }, call, args)),
  });
}

async function viewImage(
  { cwd, sandbox, fitter, takesOriginalPictures }: ViewImageNeeds & { fitter: PictureFitter },
  { signal }: ToolCallOptions,
  { path, detail }: z.output<typeof parameters>,
): Promise<ToolOutput> {
  requireInput(
    detail === undefined || detail === "original" || detail === "high",
    `view_image.detail only supports \`high\` or \`original\`; omit \`detail\` for default high resized behavior, got \`${detail}\``,
  );
  const keepsSize = takesOriginalPictures ?? detail === "original";
  const file = absolutePath(cwd, path);
  const { files } = await sandbox();
  await requireFile(files, file, signal);
  const bytes = await readImage(files, file, signal);
  const picture = await fitter.fit(bytes, { keepsSize, signal });
  if (picture.kind === "unusable") throw unusable(file, picture.reason);
  if (picture.bytes.length > MAX_SHOWN_BYTES) throw tooLarge(file, MAX_SHOWN_BYTES);
  return {
    content: describe(picture, bytes.length),
    success: true,
    parts: [
      {
        type: "input_image",
        image_url: `data:${picture.type};base64,${picture.bytes.toString("base64")}`,
        detail: keepsSize ? "original" : "high",
      },
    ],
  };
}

function describe({ type, size, bytes, resizedFrom }: FittedPicture, fileBytes: number): string {
  const shown = describeImage(type, size, bytes.length);
  return resizedFrom === null
    ? shown
    : `${describeImage(resizedFrom.type, resizedFrom.size, fileBytes)}, shown as ${shown}`;
}

function describeImage(type: string, { width, height }: FittedPicture["size"], bytes: number): string {
  return `${type}, ${width}×${height}, ${formatBytes(bytes)}`;
}

async function requireFile(files: ToolFiles, path: string, signal: AbortSignal | undefined): Promise<void> {
  const { type, sizeBytes } = await files.stat(path, { signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw fileFailure(`unable to locate image at \`${path}\``, path, error);
  });
  if (type !== "file")
    throw new BrigError(`image path \`${path}\` is not a file`, { code: "file.not-regular" });
  if (sizeBytes > MAX_FILE_BYTES) throw tooLarge(path, MAX_FILE_BYTES);
}

async function readImage(files: ToolFiles, path: string, signal: AbortSignal | undefined): Promise<Buffer> {
  const bytes = await files
    .read(path, { offsetBytes: 0, lengthBytes: MAX_FILE_BYTES, signal })
    .catch((error: unknown) => {
      signal?.throwIfAborted();
      throw fileFailure(`unable to read image at \`${path}\``, path, error);
    });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function tooLarge(path: string, maxBytes: number): BrigError {
  return unusable(path, `it is larger than ${formatBytes(maxBytes)}`);
}

function unusable(path: string, reason: string): BrigError {
  return new BrigError(`unable to process image at \`${path}\`: ${reason}`, { code: "tool.failed" });
}
