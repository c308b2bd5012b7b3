import { parse as parseToml } from "smol-toml";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { parseNetwork, SANDBOX_MODES } from "../../sandbox/index.js";
import { hashOfToken, type ServedClient, usualRights } from "./http/served-client.js";

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const count = z.int().min(0);

const clientSchema = z
  .strictObject({
    token: z.string().regex(/^[\x21-\x7e]{16,4096}$/, "must be one word of at least 16 characters"),
    tokenSha256: z.string().regex(/^[0-9a-f]{64}$/i, "must be 64 hexadecimal digits"),
    maxSandboxes: count.max(1000),
    cpus: z.number().positive(),
    memoryMb: z.int().min(64),
    minutesPerDay: count,
    requestsPerMinute: z.int().min(1).max(1_000_000),
    images: z.array(z.string().min(1).max(512)).max(1000),
    modes: z.array(z.enum(SANDBOX_MODES)),
    networks: z.array(
      z.string().refine((text) => parseNetwork(text).kind === "parsed", "must be a setting of a network"),
    ),
    seesAll: z.boolean(),
    mayChange: z.boolean(),
  })
  .partial()
  .refine(({ token, tokenSha256 }) => (token === undefined) !== (tokenSha256 === undefined), {
    error: "needs a token, or its hash as tokenSha256, and not both",
  });

const fileSchema = z.strictObject({
  clients: z.record(
    z.string().regex(/^[A-Za-z0-9_.@-]{1,64}$/, "must be the name of a client"),
    clientSchema,
  ),
});

/**
 * The clients of a file, which is TOML, or JSON if its name ends so: who they are, what they may do, and how much. Error: `usage.invalid` for
 * a file that is not understood as a whole.
 */
export async function readTokensFile(file: string): Promise<ServedClient[]> {
  const read = await readTextFile(file, MAX_FILE_BYTES);
  if (read.kind !== "text") throw unusable(file, read.kind === "missing" ? "does not exist" : read.reason);
  const parsed = fileSchema.safeParse(documentOf(file, read.text));
  if (!parsed.success) throw unusable(file, `is not valid:\n${z.prettifyError(parsed.error)}`);
  const clients = Object.entries(parsed.data.clients).map(
    ([name, { token, tokenSha256 = "", seesAll, mayChange, ...quota }]): ServedClient => ({
      name,
      tokenHash: token === undefined ? Buffer.from(tokenSha256, "hex") : hashOfToken(token),
      rights: { seesAll: seesAll ?? usualRights.seesAll, mayChange: mayChange ?? usualRights.mayChange },
      quota,
    }),
  );
  const hashes = new Map<string, string>();
  for (const { name, tokenHash } of clients) {
    const other = hashes.get(tokenHash.toString("hex"));
    if (other !== undefined) throw unusable(file, `gives ${other} and ${name} the same token`);
    hashes.set(tokenHash.toString("hex"), name);
  }
  return clients;
}

function documentOf(file: string, text: string): unknown {
  if (file.endsWith(".json")) {
    const document = parseJson(text);
    if (document === undefined) throw unusable(file, "is not JSON");
    return document;
  }
  try {
    return parseToml(text);
  } catch (cause) {
    throw unusable(file, "is not TOML", cause);
  }
}

function unusable(file: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`the file of tokens ${JSON.stringify(file)} ${reason}`, {
    code: "usage.invalid",
    hint: "docs/serve.md lists what it may contain",
    cause,
  });
}
