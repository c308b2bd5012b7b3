import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { type AgentRoleConfig, agentRoleSchema } from "../agents-schema.js";
import { parseToml } from "./toml-document.js";

const MAX_BYTES = 1024 * 1024;

/**
 * Reads the `config_file` of a role. It may be a whole configuration of Codex's; only the keys of a role
 * count. Error: `config.invalid`.
 */
export async function readRoleFile(file: string): Promise<AgentRoleConfig> {
  const read = await readTextFile(file, MAX_BYTES);
  if (read.kind === "missing") throw wrongFile(file, "does not exist");
  if (read.kind === "unreadable") throw wrongFile(file, read.reason, read.cause);
  const parsed = agentRoleSchema.omit({ config_file: true }).safeParse(parseToml(read.text, file).table);
  if (parsed.success) return parsed.data;
  throw wrongFile(file, `is not valid:\n${z.prettifyError(parsed.error)}`, parsed.error);
}

function wrongFile(file: string, what: string, cause?: unknown): BrigError {
  return new BrigError(`the file of a role, ${file}, ${what}`, {
    code: "config.invalid",
    hint: "agents.<name>.config_file names it; brig config shows where",
    cause,
  });
}
