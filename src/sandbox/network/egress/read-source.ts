import { execFile } from "node:child_process";
import { isAbsolute, join } from "node:path";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import type { Environment } from "../../../lib/env.js";

/** Exactly one of them is there. */
interface Source {
  env?: string | undefined;
  file?: string | undefined;
  command?: readonly string[] | undefined;
  value?: string | undefined;
}

interface ReadOptions {
  /** The name of the source for errors, for example "the secret KEY". */
  of: string;
  environment: Environment;
}

/** A command may ask the user to unlock something. */
const COMMAND_TIMEOUT_MS = 60_000;
const LATE_OUTPUT_MS = 500;
const FILE_MAX_BYTES = 8 * 1024 * 1024;
/** Shorter ones would be found in harmless parts of answers, and masked there. */
const SECRET_MIN_CHARS = 8;
const SECRET_MAX_CHARS = 8192;

/**
 * Reads a secret from where it is on this machine. `of` names it in errors: `usage.invalid`, also for what cannot be sent in
 * a header.
 */
export async function readSource(source: Source, { of, environment }: ReadOptions): Promise<string> {
  const value = await readUnchecked(source, { of, environment });
  if (value.length < SECRET_MIN_CHARS || value.length > SECRET_MAX_CHARS || !/^[\x21-\x7e]+$/.test(value))
    throw new BrigError(
      `${of} does not have ${SECRET_MIN_CHARS} to ${SECRET_MAX_CHARS} printable ASCII characters without spaces`,
      { code: "usage.invalid", hint: "look at where the secret is read from" },
    );
  return value;
}

async function readUnchecked(
  { env, file, command, value }: Source,
  { of, environment }: ReadOptions,
): Promise<string> {
  if (value !== undefined) return value;
  if (env !== undefined) {
    const found = environment.variables[env];
    if (found) return found;
    throw new BrigError(`${of} cannot be read: the variable ${env} is not set`, {
      code: "usage.invalid",
      hint: `set ${env} for brig, or remove the secret from the configuration`,
    });
  }
  const text =
    command === undefined
      ? await readText(file ?? "", { of: `the file of ${of}`, environment })
      : await runCommand(command, of);
  return text.replace(/\r?\n$/, "");
}

/** Error: `usage.invalid`. */
export async function readText(written: string, { of, environment }: ReadOptions): Promise<string> {
  const path = written.startsWith("~/") ? join(environment.home, written.slice(2)) : written;
  if (!isAbsolute(path))
    throw new BrigError(`${of} is not an absolute path: ${JSON.stringify(written)}`, {
      code: "usage.invalid",
      hint: "begin it with / or ~/",
    });
  const read = await readTextFile(path, FILE_MAX_BYTES);
  if (read.kind === "text") return read.text;
  const reason = read.kind === "missing" ? "does not exist" : read.reason;
  throw new BrigError(`${of} cannot be used: ${path} ${reason}`, { code: "usage.invalid" });
}

/** Runs a command and returns its output. This may be a part of the secret, so it is in no message and no cause. */
export async function runCommand([program = "", ...args]: readonly string[], of: string): Promise<string> {
  const stdout = await new Promise<string | null>((resolve) => {
    const limit = { timeout: COMMAND_TIMEOUT_MS, killSignal: "SIGKILL" } as const;
    const child = execFile(program, args, limit, (error, text) => resolve(error === null ? text : null));
    // A process that it leaves behind may keep its output open for ever.
    child.once("exit", () => {
      const outputs = [child.stdout, child.stderr];
      setTimeout(() => outputs.forEach((output) => void output?.destroy()), LATE_OUTPUT_MS).unref();
    });
  });
  if (stdout !== null) return stdout;
  throw new BrigError(`${of} cannot be read: ${JSON.stringify(program)} has failed`, {
    code: "usage.invalid",
    hint: "run the command by hand",
  });
}
