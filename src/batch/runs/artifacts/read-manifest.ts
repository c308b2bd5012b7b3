import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { type ArtifactManifest, artifactManifestSchema, MANIFEST_FILE } from "./artifact-manifest.js";
import { splitName } from "./artifact-paths.js";

const MANIFEST_MAX_BYTES = 128 * 1024 * 1024;

/** The artifacts that a folder has; null for none. Error: `usage.invalid` for a file that brig did not write so. */
export async function readManifest(folder: string): Promise<ArtifactManifest | null> {
  const file = join(folder, MANIFEST_FILE);
  const read = await readTextFile(file, MANIFEST_MAX_BYTES);
  if (read.kind === "missing") return null;
  const parsed = artifactManifestSchema.safeParse(read.kind === "text" ? parseJson(read.text) : undefined);
  if (parsed.success && parsed.data.entries.every((entry) => splitName(entry.file) !== null))
    return parsed.data;
  throw new BrigError(`${JSON.stringify(file)} is not a list of artifacts`, {
    code: "usage.invalid",
    hint: "run the attempt again",
    cause: parsed.error,
  });
}
