import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { parseJson } from "../../../lib/json/parse-json.js";

const FILE = "queue.json";
const MAX_BYTES = 64 * 1024;

const identitySchema = z.strictObject({
  schemaVersion: z.literal(1),
  run: z.string().regex(/^[0-9a-f]{16}$/),
});

/** The name that the run of a folder has in queues. It is made once, so that the same command finds its attempts again. */
export async function runIdentity(folder: string): Promise<string> {
  const file = join(folder, FILE);
  const read = await readTextFile(file, MAX_BYTES);
  if (read.kind === "missing") {
    const run = randomBytes(8).toString("hex");
    await writeDurably(file, `${JSON.stringify({ schemaVersion: 1, run })}\n`);
    return run;
  }
  const parsed = identitySchema.safeParse(read.kind === "text" ? parseJson(read.text) : undefined);
  if (parsed.success) return parsed.data.run;
  throw new BrigError(`${file} does not say which run in the queue this is`, {
    code: "usage.invalid",
    hint: "remove the file: what is in the queue is then run again",
    cause: parsed.error,
  });
}
