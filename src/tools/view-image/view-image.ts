import { z } from "zod";
import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { imageType } from "../../lib/image-type.js";
import { answer } from "../answer.js";
import { defineTool } from "../define-tool.js";
import { absolutePath } from "../file-path.js";
import { fileFailure } from "../os-error.js";
import { requireInput } from "../require-input.js";
import type { ToolFiles } from "../sandbox.js";
import type { Tool, ToolCallOptions, ToolOutput } from "../tool.js";
import type { Workbench } from "../workbench.js";
import { type ImageSize, imageSize } from "./image-size.js";

/** What models look at without scaling it down themselves. */
const MAX_SIDE_PIXELS = 2048;
/** What goes into one request with room to spare. */
const MAX_BYTES = 20 * 1024 * 1024;

const parameters = z.object({
  path: z
    .string()
    .describe("Path of a PNG, JPEG, GIF or WebP file; a relative one starts from the session's directory."),
  detail: z
    .string()
    .optional()
    .describe("Only `original`, for a picture larger than 2048 pixels a side to be seen as it is."),
});

export function viewImageTool(bench: Workbench): Tool {
  return defineTool({
    name: "view_image",
    description: "Shows you a picture from the file system.",
    parameters,
    supportsParallel: true,
    run: (args, call) => answer(() => viewImage(bench, call, args)),
  });
}

async function viewImage(
  bench: Workbench,
  { signal }: ToolCallOptions,
  { path, detail }: z.output<typeof parameters>,
): Promise<ToolOutput> {
  requireInput(
    detail === undefined || detail === "original",
    `view_image.detail only supports \`original\`; omit \`detail\` for default resized behavior, got \`${detail}\``,
  );
  const file = absolutePath(bench.cwd, path);
  const { files } = await bench.sandbox();
  await requireFile(files, file, signal);
  const bytes = await readImage(files, file, signal);
  const { type, size } = recognise(bytes, file);
  if (detail === undefined) requireFit(size, file);
  return {
    content: `${type}, ${size.width}×${size.height}, ${formatBytes(bytes.length)}`,
    success: true,
    parts: [
      {
        type: "input_image",
        image_url: `data:${type};base64,${bytes.toString("base64")}`,
        detail: detail === undefined ? "high" : "original",
      },
    ],
  };
}

async function requireFile(files: ToolFiles, path: string, signal: AbortSignal | undefined): Promise<void> {
  const { type } = await files.stat(path, { signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw fileFailure(`unable to locate image at \`${path}\``, path, error);
  });
  if (type !== "file")
    throw new BrigError(`image path \`${path}\` is not a file`, { code: "file.not-regular" });
}

async function readImage(files: ToolFiles, path: string, signal: AbortSignal | undefined): Promise<Buffer> {
  const bytes = await files
    .read(path, { offsetBytes: 0, lengthBytes: MAX_BYTES + 1, signal })
    .catch((error: unknown) => {
      signal?.throwIfAborted();
      throw fileFailure(`unable to read image at \`${path}\``, path, error);
    });
  if (bytes.length > MAX_BYTES) throw unusable(path, `it is larger than ${formatBytes(MAX_BYTES)}`);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function recognise(bytes: Buffer, path: string): { type: string; size: ImageSize } {
  const type = imageType(bytes);
  if (type === null) throw unusable(path, "it is no PNG, JPEG, GIF or WebP image");
  const size = imageSize(bytes, type);
  if (size === null) throw unusable(path, `it is cut off or broken (${type})`);
  return { type, size };
}

function requireFit({ width, height }: ImageSize, path: string): void {
  if (Math.max(width, height) <= MAX_SIDE_PIXELS) return;
  throw unusable(
    path,
    `it is ${width}×${height} pixels, and at most ${MAX_SIDE_PIXELS} a side are shown; make a smaller copy, or ask for it with detail \`original\``,
  );
}

function unusable(path: string, reason: string): BrigError {
  return new BrigError(`unable to process image at \`${path}\`: ${reason}`, { code: "tool.failed" });
}
