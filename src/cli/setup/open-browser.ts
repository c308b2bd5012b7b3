import { spawn } from "node:child_process";
import { platform } from "node:os";
import type { CliContext } from "../context.js";

/**
 * Opens a person's browser where there is one to see it: on a desktop, not over SSH and not in CI. The address was shown already, so
 * that nothing is lost where this does not succeed.
 */
export function openBrowser(url: URL, { environment, stderr }: CliContext): void {
  const { variables, isContinuousIntegration } = environment;
  const isWatched = stderr.isTTY === true && !isContinuousIntegration;
  if (!isWatched || variables.SSH_CONNECTION !== undefined || variables.SSH_TTY !== undefined) return;
  const opener = openerOf(variables);
  if (opener === null) return;
  // What the opener and the browser say does not belong on this terminal.
  const child = spawn(opener, [url.href], { detached: true, stdio: "ignore", env: variables });
  child.on("error", () => undefined);
  child.unref();
}

function openerOf(variables: Readonly<Record<string, string>>): string | null {
  if (platform() === "darwin") return "open";
  return variables.DISPLAY === undefined && variables.WAYLAND_DISPLAY === undefined ? null : "xdg-open";
}
