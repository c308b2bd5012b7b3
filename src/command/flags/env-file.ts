import { isUtf8 } from "node:buffer";
import { resolve } from "node:path";
import { type BrigError, invalidUsage } from "../../errors.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import { withoutMark } from "../../lib/utf8.js";
import type { CliContext } from "../context.js";
import { readGivenFile } from "../given-file.js";

/** The variables in a file of `--env-file`. Errors: `usage.invalid`, whose message shows no value; the signal's reason. */
export async function readEnvFile(
  file: string,
  { cwd, signal, stderr, environment }: Pick<CliContext, "cwd" | "signal" | "stderr" | "environment">,
): Promise<Record<string, string>> {
  const bytes = await readGivenFile(resolve(cwd, file), signal, { stderr });
  if (!isUtf8(bytes)) throw refused(file, "is not text in UTF-8");
  return parseEnvFile(withoutMark(bytes.toString("utf8")), { file, variables: environment.variables });
}

interface EnvFile {
  /** The file's name in messages. */
  file: string;
  /** The variables that a line with only a name takes its value from. */
  variables: Readonly<Record<string, string>>;
}

/**
 * The format of `docker run --env-file`: `NAME=VALUE` on each line, where quotes and blanks belong to the value. A name alone passes on
 * the variable of this machine, if there is one. Lines that begin with # are comments.
 */
function parseEnvFile(text: string, { file, variables }: EnvFile): Record<string, string> {
  const found = new Map<string, string>();
  for (const [at, written] of text.split("\n").entries()) {
    const line = written.replace(/\r$/, "").trimStart();
    if (line === "" || line.startsWith("#")) continue;
    const assignsAt = line.indexOf("=");
    const name = assignsAt === -1 ? line : line.slice(0, assignsAt);
    const where = `${file}:${at + 1}`;
    if (name === "") throw refused(where, "has no name before the =");
    if (/\s/.test(name)) throw refused(where, "has a blank in the name of the variable");
    if (line.includes("\0")) throw refused(where, "contains a NUL");
    if (assignsAt !== -1) found.set(name, line.slice(assignsAt + 1));
    else if (Object.hasOwn(variables, name)) found.set(name, variables[name] ?? "");
  }
  return Object.fromEntries(found);
}

function refused(where: string, reason: string): BrigError {
  return invalidUsage(
    `the file of variables ${visibleLine(where)} ${reason}`,
    "--env-file takes NAME=VALUE on each line, NAME alone, and comments that begin with #",
  );
}
