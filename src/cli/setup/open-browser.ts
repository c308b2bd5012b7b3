import { spawn } from "node:child_process";
import { platform } from "node:os";
import type { CliContext } from "../context.js";

/** Opens a browser if a person can see it. Failures are ignored: the address is already on the screen. */
export function openBrowser(url: URL, { environment, stderr }: CliContext): void {
  const { variables, isContinuousIntegration } = environment;
  const hasPerson = stderr.isTTY === true && !isContinuousIntegration;
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
