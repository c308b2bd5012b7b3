import { posix } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";

/** A `file://` URI of a client as the absolute path that it stands for, without `..` and doubled slashes. */
export const fileUri = z.string().transform((uri, context) => {
  const path = pathOf(uri);
  if (path !== null) return path;
  context.issues.push({
    code: "custom",
    message: `${JSON.stringify(uri.slice(0, 200))} is not a file:// URI of an absolute path`,
    input: uri,
  });
  return z.NEVER;
});

export function toFileUri(path: string): string {
  return pathToFileURL(path).href;
}

function pathOf(uri: string): string | null {
  if (!uri.startsWith("file:///")) return null;
  try {
    const path = fileURLToPath(uri);
    return path.includes("\0") ? null : posix.normalize(path).replace(/(?<=.)\/$/, "");
  } catch {
    return null;
  }
}
