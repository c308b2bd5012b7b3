import { z } from "zod";
import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import {
  type ArgumentsOf,
  absolutePath,
  defineTool,
  type SandboxAccess,
  type WorkingDirectory,
} from "../define-tool.js";
import { withFileErrors } from "../os-error.js";
import { failureOutput, requireInput, type Tool, type ToolCallOptions, type ToolOutput } from "../tool.js";
import { type FittedImage, ImageResizer } from "./image-resizer.js";

/** Leaves room in a request for the rest of the conversation. */
const MAX_SHOWN_BYTES = 20 * 1024 * 1024;
/** Limits the file before resizing. */
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
  /** Whether the model receives images in their original size; null if each call decides. */
  readonly takesOriginalPictures: boolean | null;
}

export function viewImageTool(needs: ViewImageNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  const resizer = new ImageResizer();
  return defineTool({
    name: "view_image",
    description: "Shows you a picture from the file system.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
    run: (args, call) => viewImage({ ...needs, resizer }, call, args).catch(failureOutput),
  });
}

async function viewImage(
  { cwd, sandbox, resizer, takesOriginalPictures }: ViewImageNeeds & { resizer: ImageResizer },
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
  const options = { path: file, signal };
  const stat = () => files.stat(file, { signal });
  const { type, sizeBytes } = await withFileErrors(stat, `unable to locate image at \`${file}\``, options);
  if (type !== "file")
    throw new BrigError(`image path \`${file}\` is not a file`, { code: "file.not-regular" });
  if (sizeBytes > MAX_FILE_BYTES) throw tooLarge(file, MAX_FILE_BYTES);
  const read = () => files.read(file, { offsetBytes: 0, lengthBytes: MAX_FILE_BYTES, signal });
  const data = await withFileErrors(read, `unable to read image at \`${file}\``, options);
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const image = await resizer.fit(bytes, { keepsSize, signal });
  if (image.kind === "unusable") throw unusable(file, image.reason);
  if (image.bytes.length > MAX_SHOWN_BYTES) throw tooLarge(file, MAX_SHOWN_BYTES);
  return {
    content: describe(image, bytes.length),
    success: true,
    parts: [
      {
        type: "input_image",
        image_url: `data:${image.type};base64,${image.bytes.toString("base64")}`,
        detail: keepsSize ? "original" : "high",
      },
    ],
  };
}

function describe({ type, size, bytes, resizedFrom }: FittedImage, fileBytes: number): string {
  const shown = describeImage(type, size, bytes.length);
  return resizedFrom === null
    ? shown
    : `${describeImage(resizedFrom.type, resizedFrom.size, fileBytes)}, shown as ${shown}`;
}

function describeImage(type: string, { width, height }: FittedImage["size"], bytes: number): string {
  return `${type}, ${width}×${height}, ${formatBytes(bytes)}`;
}

function tooLarge(path: string, maxBytes: number): BrigError {
  return unusable(path, `it is larger than ${formatBytes(maxBytes)}`);
}

function unusable(path: string, reason: string): BrigError {
  return new BrigError(`unable to process image at \`${path}\`: ${reason}`, { code: "tool.failed" });
}
