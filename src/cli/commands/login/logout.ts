import type { Command } from "commander";
import type { CliContext } from "../../../command/index.js";
import { say } from "../../../command/index.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import { type ConfigFlags, configOption, configuredIssuer } from "./login.js";

export function defineLogout(command: Command, context: CliContext): void {
  command.addOption(configOption()).action((flags: ConfigFlags) => forgetLogin(flags, context));
}

async function forgetLogin(flags: ConfigFlags, context: CliContext): Promise<void> {
  const { logOut } = await import("../../../agent/index.js");
  const { environment, signal, stderr } = context;
  const settings = await configuredIssuer(flags, context);
  const { wasLoggedIn, notRevoked } = await logOut(environment.brigHome, settings, { signal });
  await say(stderr, wasLoggedIn ? "You are logged out.\n" : "Nobody was logged in.\n");
  if (notRevoked !== null)
    await say(
      stderr,
      `brig: the login is removed here, but its provider did not revoke it: ${neutraliseLine(notRevoked)}\nhint: revoke it in the settings of your account\n`,
    );
  if (environment.openaiApiKey !== undefined)
    await say(stderr, "brig: OPENAI_API_KEY is set and is still used\n");
}
