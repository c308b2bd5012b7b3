import { spawn } from "node:child_process";
import { platform } from "node:os";
import type { CliContext } from "../../command/index.js";

/**
 * Opens a browser if somebody can see it: there is a terminal, or `isAskedFor` says so. Failures are ignored,
 * because the address is on the screen anyway.
 */
export function openBrowser(
  url: URL,
  { environment, stderr }: CliContext,
  { isAskedFor = false }: { isAskedFor?: boolean } = {},
): void {
  const { variables, isContinuousIntegration } = environment;
  const hasPerson = (stderr.isTTY === true || isAskedFor) && !isContinuousIntegration;
  if (!hasPerson || variables.SSH_CONNECTION !== undefined || variables.SSH_TTY !== undefined) return;
  const opener = openerOf(variables);
  if (opener === null) return;
  // "ignore", because the browser's messages do not belong on this terminal.
  const child = spawn(opener, [url.href], { detached: true, stdio: "ignore", env: variables });
  child.on("error", () => undefined);
  child.unref();
}

function openerOf(variables: Readonly<Record<string, string>>): string | null {
  if (platform() === "darwin") return "open";
  return variables.DISPLAY === undefined && variables.WAYLAND_DISPLAY === undefined ? null : "xdg-open";
}
