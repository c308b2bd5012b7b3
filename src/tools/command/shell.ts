import { basename, posix } from "node:path";
import { text } from "node:stream/consumers";
import { shellQuote } from "../../lib/shell-quote.js";
import type { ToolSandbox } from "../tool-sandbox.js";

export interface UserShell {
  path: string;
  /**
   * Put before a script for a login shell, to restore what the profile removes from PATH; often empty. Images
   * put their interpreters there, and the /etc/profile of most distributions resets PATH. brig's own programs
   * come last in it.
   */
  pathRepair: string;
}

export interface ShellAccess {
  shell(): Promise<UserShell>;
  readonly allowsLoginShell: boolean;
}

/** Has `apply_patch`, `applypatch` and `rg`. It comes last in PATH, so that an image's own programs win. */
const TOOLBOX_PROGRAMS = "/.brig/bin";

const fallbackShell: UserShell = { path: "/bin/sh", pathRepair: "" };

// A login profile may print something, so the last PATH is separated by a NUL.
const probeScript = `
shell=$(command -v bash || command -v sh)
printf '%s\\0%s\\0' "$shell" "$PATH"
exec "$shell" -lc 'printf "\\0%s" "$PATH"'
`;

/** Takes a few milliseconds, so call it once per sandbox. */
export async function findUserShell(sandbox: ToolSandbox): Promise<UserShell> {
  const shell = await sandbox.spawn(["/bin/sh", "-c", probeScript], {
    stdin: "closed",
    mergeOutput: true,
    timeoutMs: 10_000,
  });
  const [answer] = await Promise.all([text(shell.stdout), shell.exit]);
  const [path, imagePath] = answer.split("\0");
  if (path === undefined || !path.startsWith("/") || imagePath === undefined) return fallbackShell;
  const kept = new Set(answer.slice(answer.lastIndexOf("\0") + 1).split(":"));
  const directories = imagePath.split(":");
  const images = directories.filter((directory) => directory !== TOOLBOX_PROGRAMS);
  const before = images.every((directory) => kept.has(directory)) ? "" : `${shellQuote([images.join(":")])}:`;
  const losesToolbox = directories.includes(TOOLBOX_PROGRAMS) && !kept.has(TOOLBOX_PROGRAMS);
  const after = losesToolbox ? `:${TOOLBOX_PROGRAMS}` : "";
  return { path, pathRepair: before + after === "" ? "" : `PATH=${before}"$PATH"${after}; ` };
}

function scriptArgv(shellPath: string, script: string, { login }: { login: boolean }): string[] {
  const name = posix.basename(shellPath).toLowerCase();
  if (name === "pwsh" || name === "powershell")
    return [shellPath, ...(login ? [] : ["-NoProfile"]), "-Command", script];
  return [shellPath, login ? "-lc" : "-c", script];
}

/** `shownArgv` is the command without the repair of PATH. */
export function shellArgv(
  { path, pathRepair }: UserShell,
  script: string,
  { login }: { login: boolean },
): { argv: string[]; shownArgv: string[] } {
  const shownArgv = scriptArgv(path, script, { login });
  return { argv: login ? scriptArgv(path, pathRepair + script, { login }) : shownArgv, shownArgv };
}

export function hiddenLogin({ allowsLoginShell }: { allowsLoginShell: boolean }): readonly string[] {
  return allowsLoginShell ? [] : ["login"];
}

/** The answer to a request for a login shell if none is allowed, else null. */
export function refusedLogin(
  { allowsLoginShell }: { allowsLoginShell: boolean },
  login: boolean | undefined,
): string | null {
  if (login !== true || allowsLoginShell) return null;
  return "login shell is disabled by config; omit `login` or set it to false.";
}

/** The script of `bash -c SCRIPT`, or of another shell that is started like this; null for any other command. */
export function shellScript(argv: readonly string[]): string | null {
  const [shell = "", flag = "", script = null] = argv;
  const runsScript = argv.length === 3 && /^-l?c$/.test(flag) && /^(?:ba|z|da)?sh$/.test(basename(shell));
  return runsScript ? script : null;
}

/** A command for a person to read. Of `bash -c SCRIPT` only the script is shown. */
export function commandForPeople(argv: readonly string[]): string {
  return shellScript(argv) ?? shellQuote(argv);
}
