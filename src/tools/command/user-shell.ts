import { posix } from "node:path";
import { text } from "node:stream/consumers";
import type { ToolSandbox } from "../tool-sandbox.js";
import { shellQuote } from "./shell-quote.js";

/** The shell that runs scripts in a sandbox. */
export interface UserShell {
  /** E.g. `/usr/bin/bash`. */
  path: string;
  /**
   * The image's PATH if a login shell loses a part of it, else null. Images put their interpreters there, and the
   * /etc/profile of most distributions resets PATH.
   */
  lostPath: string | null;
  /** Whether a login shell loses the directory of brig's own programs, which comes last in PATH. */
  losesToolbox: boolean;
}

export interface ShellAccess {
  /** The shell of the sandbox's image. */
  shell(): Promise<UserShell>;
  readonly allowsLoginShell: boolean;
}

/** Has `apply_patch`, `applypatch` and `rg`. It comes last in PATH, so that an image's own programs win. */
const TOOLBOX_PROGRAMS = "/.brig/bin";

const fallbackShell: UserShell = { path: "/bin/sh", lostPath: null, losesToolbox: false };

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
  return {
    path,
    lostPath: images.some((directory) => !kept.has(directory)) ? images.join(":") : null,
    losesToolbox: directories.includes(TOOLBOX_PROGRAMS) && !kept.has(TOOLBOX_PROGRAMS),
  };
}

export function scriptArgv(shellPath: string, script: string, { login }: { login: boolean }): string[] {
  const name = posix.basename(shellPath).toLowerCase();
  if (name === "pwsh" || name === "powershell")
    return [shellPath, ...(login ? [] : ["-NoProfile"]), "-Command", script];
  return [shellPath, login ? "-lc" : "-c", script];
}

/** Like `scriptArgv`, but restores the parts of PATH that a login profile removes. */
export function runnableArgv(shell: UserShell, script: string, { login }: { login: boolean }): string[] {
  const { path, lostPath, losesToolbox } = shell;
  const before = lostPath === null ? "" : `${shellQuote([lostPath])}:`;
  const after = losesToolbox ? `:${TOOLBOX_PROGRAMS}` : "";
  const repair = login && before + after !== "" ? `PATH=${before}"$PATH"${after}; ` : "";
  return scriptArgv(path, repair + script, { login });
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
