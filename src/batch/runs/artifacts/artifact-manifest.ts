import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { splitName } from "./artifact-paths.js";

const entrySchema = z.strictObject({
  path: z.string().startsWith("/").describe("In the container"),
  kind: z.enum(["file", "directory"]),
  file: z.string().describe("Relative to the folder of the artifacts"),
  sizeBytes: z.int().min(0),
  mode: z.int().min(0).max(0o777).describe("Permission bits, without setuid, setgid and sticky"),
  uid: z.int().min(0),
  gid: z.int().min(0),
  modifiedMs: z.number(),
});

/** `artifacts.json`: what was copied out of the agent's container, and how it stood there. */
const artifactManifestSchema = z.strictObject({
  schemaVersion: z.literal(1),
  entries: z.array(entrySchema).describe("Directories come before what is in them"),
  deleted: z
    .array(z.string().startsWith("/"))
    .describe("Paths below the declared artifacts that the image has and the agent removed"),
  findings: z.array(z.string()).describe("What was refused, and why"),
  notes: z.array(z.string()).default([]).describe("Those of the findings where there was nothing to refuse"),
});
export type ArtifactManifest = z.infer<typeof artifactManifestSchema>;
export type ArtifactEntry = z.infer<typeof entrySchema>;

export const MANIFEST_FILE = "artifacts.json";
export const ARTIFACTS_FOLDER = "artifacts";

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
