import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "smol-toml";
import type { CliContext } from "../../../command/index.js";
import { BrigError, isBrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { acquireLock } from "../../../lib/file-lock.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { array, nullish, object, readOrNull, record, string } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import type { Sandbox } from "../../../sandbox/index.js";
import type { PreparedAgent } from "../agents/prepare-agent.js";
import { askLine } from "../ask-line.js";
import type { Configuration } from "./collect-files.js";

/** A folder that a person has said an agent may trust, as the agent is to be told. */
export interface FolderTrust {
  agent: "codex" | "claude";
  /** Absolute, without symbolic links. */
  folder: string;
}

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FOLDERS = 5000;
const LOCK_WAIT_MS = 10_000;
const shape = object({ folders: array(string) });
const codexShape = object({ projects: nullish(record(object({ trust_level: nullish(string) }))) });

/** What of these programs starts a screen, on which they ask whether the folder is to be trusted. */
const SCREENS: Readonly<Record<FolderTrust["agent"], (args: readonly string[]) => boolean>> = {
  codex: (args) => args.every((arg) => arg.startsWith("-")) || ["resume", "fork"].includes(args[0] ?? ""),
  claude: (args) => !args.some((arg) => ["-p", "--print", "--version", "-v", "--help", "-h"].includes(arg)),
};

/**
 * Whether the folder is to be trusted: the person is asked once for each folder, here and by brig, since everything that the agent itself writes
 * may have been written by a command in its sandbox. Null if it is not, and for programs that do not ask.
 */
export async function trustOf(
  { agent, configuration }: PreparedAgent,
  { argv, workspace }: { argv: readonly string[]; workspace: string | null },
  context: CliContext,
): Promise<FolderTrust | null> {
  const name = agent?.name;
  if ((name !== "codex" && name !== "claude") || workspace === null) return null;
  const { stdin, stdout, environment } = context;
  if (stdin.isTTY !== true || stdout.isTTY !== true || !SCREENS[name](argv.slice(1))) return null;
  const folder = await realpath(workspace).catch(() => null);
  if (folder === null || (name === "codex" && isDecided(configuration, folder))) return null;
  const known = await readFolders(environment.brigHome);
  if (known.includes(folder)) return { agent: name, folder };
  const question = `Do you trust what is in ${neutraliseLine(folder)}? ${name} obeys settings and instructions there. [y/N] `;
  const answer = (await askLine(question, context)).trim().toLowerCase();
  if (answer !== "y" && answer !== "yes") return null;
  await addFolder(environment.brigHome, folder);
  return { agent: name, folder };
}

/** Whether the person's own configuration of Codex says of the folder whether it is trusted. */
function isDecided({ files }: Configuration, folder: string): boolean {
  const text = files.find(({ path }) => path === ".codex/config.toml")?.text ?? "";
  try {
    return readOrNull(codexShape, parse(text))?.projects?.[folder]?.trust_level != null;
  } catch {
    return false;
  }
}

/** Codex takes it as a setting, whatever its configuration in the sandbox says. */
export function trustingArguments(argv: readonly string[], trust: FolderTrust | null): readonly string[] {
  if (trust?.agent !== "codex") return argv;
  const [program = "", ...rest] = argv;
  // TOML has the escapes of JSON, and wants one more character escaped.
  const folder = JSON.stringify(trust.folder).replaceAll("\x7f", "\\u007f");
  return [program, "-c", `projects={${folder}={trust_level="trusted"}}`, ...rest];
}

/** Claude Code reads it from a file of its own. One that is there already, in a home that was kept, says what it has to say. */
export async function writeTrust(
  sandbox: Sandbox,
  { agent, folder }: FolderTrust,
  { home, signal }: { home: string; signal: AbortSignal },
): Promise<void> {
  if (agent !== "claude") return;
  const path = `${home}/.claude.json`;
  const isThere = await sandbox.files.stat(path, { signal }).then(
    () => true,
    (error: unknown) => {
      if (isBrigError(error, "file.not-found")) return false;
      throw error;
    },
  );
  if (isThere) return;
  const { stdout: key } = await sandbox.exec(["/bin/sh", "-c", 'printf %s "$ANTHROPIC_API_KEY"'], { signal });
  const text = JSON.stringify({
    // Its first steps come before the question about the folder, and ask a server that the sandbox may not reach.
    ...{ hasCompletedOnboarding: true, theme: "dark" },
    // It also asks whether it may use the key, which is a placeholder that was made for it.
    ...(key !== "" && { customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] } }),
    projects: { [folder]: { hasTrustDialogAccepted: true } },
  });
  await sandbox.files.write(path, text, { mode: 0o600, signal });
}

function fileIn(brigHome: string): string {
  return join(brigHome, "trusted-folders.json");
}

/** Error: `config.invalid` for a file that is not brig's. */
async function readFolders(brigHome: string): Promise<string[]> {
  const path = fileIn(brigHome);
  const file = await readTextFile(path, MAX_FILE_BYTES);
  if (file.kind === "missing") return [];
  const read = file.kind === "text" ? readOrNull(shape, parseJson(file.text)) : null;
  if (read !== null) return read.folders;
  throw new BrigError(`${path} is not a list of trusted folders`, {
    code: "config.invalid",
    hint: "remove it; you are asked about each folder again",
  });
}

/** The folders that were added longest ago make room. */
async function addFolder(brigHome: string, folder: string): Promise<void> {
  await mkdir(brigHome, { recursive: true, mode: 0o700 });
  const outcome = await acquireLock(fileIn(brigHome), { waitMs: LOCK_WAIT_MS });
  using _lock = outcome.kind === "held" ? outcome.lock : null;
  const folders = [...(await readFolders(brigHome)).filter((one) => one !== folder), folder];
  await writeDurably(
    fileIn(brigHome),
    `${JSON.stringify({ folders: folders.slice(-MAX_FOLDERS) }, null, 2)}\n`,
  );
}
