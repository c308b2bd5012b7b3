import { posix } from "node:path";
import { text } from "node:stream/consumers";
import type { ToolSandbox } from "../tool-sandbox.js";
import { shellQuote } from "./shell-quote.js";

/** The shell that scripts are run with in one sandbox. */
export interface UserShell {
  /** E.g. `/usr/bin/bash`. */
  path: string;
  /**
   * The image's own PATH where a login shell would lose a part of it, else null. Images put their interpreters there, and
   * /etc/profile of most distributions sets PATH anew.
   */
  lostPath: string | null;
  /** Whether a login shell would lose the directory of brig's own programs, which comes last in PATH. */
  losesToolbox: boolean;
}

export interface ShellAccess {
  /** The shell of the sandbox's image, asked once. */
  shell(): Promise<UserShell>;
  readonly allowsLoginShell: boolean;
}

/** Where sandboxes have `apply_patch`, `applypatch` and `rg`, behind whatever the image has under these names. */
const TOOLBOX_PROGRAMS = "/.brig/bin";

const fallbackShell: UserShell = { path: "/bin/sh", lostPath: null, losesToolbox: false };

// Everything before the last NUL but one may be a greeting that a profile prints.
const question = `
shell=$(command -v bash || command -v sh)
printf '%s\\0%s\\0' "$shell" "$PATH"
exec "$shell" -lc 'printf "\\0%s" "$PATH"'
`;

/** Asks the sandbox which shell its image has. Costs a few milliseconds: ask once per sandbox. */
export async function findUserShell(sandbox: ToolSandbox): Promise<UserShell> {
  const shell = await sandbox.spawn(["/bin/sh", "-c", question], {
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

/** The argument list that runs a script in a shell. */
export function scriptArgv(shellPath: string, script: string, { login }: { login: boolean }): string[] {
  const name = posix.basename(shellPath).toLowerCase();
  if (name === "pwsh" || name === "powershell")
    return [shellPath, ...(login ? [] : ["-NoProfile"]), "-Command", script];
  return [shellPath, login ? "-lc" : "-c", script];
}

/** As `scriptArgv`, with the image's PATH put back in front of what the profile made of it, and brig's programs behind it. */
export function runnableArgv(shell: UserShell, script: string, { login }: { login: boolean }): string[] {
  const { path, lostPath, losesToolbox } = shell;
  const before = lostPath === null ? "" : `${shellQuote([lostPath])}:`;
  const after = losesToolbox ? `:${TOOLBOX_PROGRAMS}` : "";
  const repair = login && before + after !== "" ? `PATH=${before}"$PATH"${after}; ` : "";
  return scriptArgv(path, repair + script, { login });
}

/** The parameter that asks for a login shell is not offered where none is allowed. */
export function hiddenLogin({ allowsLoginShell }: { allowsLoginShell: boolean }): readonly string[] {
  return allowsLoginShell ? [] : ["login"];
}

/** What to answer to a request for a login shell where none is allowed, else null. */
export function refusedLogin(
  { allowsLoginShell }: { allowsLoginShell: boolean },
  login: boolean | undefined,
): string | null {
  if (login !== true || allowsLoginShell) return null;
  return "login shell is disabled by config; omit `login` or set it to false.";
}
