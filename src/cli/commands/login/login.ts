import { type Command, InvalidArgumentError, Option } from "commander";
import type { IssuerSettings, LoginStatus, StoredStatus } from "../../../agent/index.js";
import { loadConfig, parseOverride } from "../../../agent/index.js";
import type { CliContext } from "../../../command/index.js";
import { collect, durationArgument, say, write, writeJson } from "../../../command/index.js";
import { invalidUsage } from "../../../errors.js";
import { readProxies } from "../../../lib/proxy/proxies.js";
import { neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import { readHidden } from "../../questions/hidden-prompt.js";
import { openBrowser } from "../../setup/open-browser.js";

export interface ConfigFlags {
  config?: string[];
}

export interface LoginFlags extends ConfigFlags {
  apiKey?: boolean;
  withApiKey?: boolean;
  deviceAuth?: boolean;
  browser: boolean;
  port?: number;
  timeout: number;
}

export const defaultTimeoutMs = 10 * 60 * 1000;
const maxTimeoutMs = 24 * 3600 * 1000;

export function defineLogin(command: Command, context: CliContext): void {
  command
    .option("--api-key", "store an API key, read from standard input")
    .addOption(new Option("--with-api-key", "Codex's name for --api-key").hideHelp())
    .option("--device-auth", "log in with a code in a browser on any machine")
    .option("--no-browser", "print the address and do not open a browser")
    .option(
      "--port <number>",
      "the local port that the browser returns to; 0 for any free one (default: 1455)",
      portArgument,
    )
    .addOption(
      new Option("--timeout <time>", "how long to wait: 90, 30s, 10m")
        .argParser(durationArgument({ atMostMs: maxTimeoutMs }))
        .default(defaultTimeoutMs, "10m"),
    )
    .addOption(configOption())
    .action((flags: LoginFlags) => logIn(flags, context));
  command
    .command("status")
    .description("show who is logged in; the exit status is 1 if nobody is")
    .option("--json", "print the status as JSON")
    .action((flags: { json?: boolean }) => showStatus(flags, context));
}

export function configOption(): Option {
  return new Option(
    "-c, --config <key=value>",
    "set a key of config.toml, for example oauth.issuer=…; may be repeated",
  ).argParser(collect);
}

/** The issuer that `[oauth]` names. Prints warnings about the configuration on stderr. */
export async function configuredIssuer(
  { config: assignments }: ConfigFlags,
  { environment, stderr }: CliContext,
): Promise<IssuerSettings> {
  const { issuerSettings } = await import("../../../agent/index.js");
  const { config, warnings } = await loadConfig(environment, { overrides: assignments?.map(parseOverride) });
  for (const warning of warnings) await say(stderr, `brig: ${neutralise(warning)}\n`);
  return issuerSettings(config.oauth, readProxies(environment.variables));
}

async function logIn(flags: LoginFlags, context: CliContext): Promise<void> {
  const asksForKey = flags.apiKey === true || flags.withApiKey === true;
  if (asksForKey && flags.deviceAuth === true)
    throw invalidUsage("--api-key and --device-auth cannot be combined", "leave out one of them");
  if (asksForKey) await keepApiKey(context);
  else await logInAtIssuer(flags, context);
  if (context.environment.openaiApiKey !== undefined)
    await say(
      context.stderr,
      "brig: OPENAI_API_KEY is set and is used instead of this login; unset it to use the login\n",
    );
}

async function keepApiKey(context: CliContext): Promise<void> {
  const { parseApiKey, storeApiKey } = await import("../../../agent/index.js");
  const key = parseApiKey(await readHidden("API key: ", context));
  await storeApiKey(context.environment.brigHome, key, context);
  await say(context.stderr, "The API key is stored.\n");
}

/** Logs a person in at the issuer and stores the login. */
export async function logInAtIssuer(flags: LoginFlags, context: CliContext): Promise<void> {
  const { identityOf, storeTokens } = await import("../../../agent/index.js");
  const settings = await configuredIssuer(flags, context);
  const tokens = await (flags.deviceAuth === true ? logInByCode : logInByBrowser)(settings, flags, context);
  await storeTokens(context.environment.brigHome, tokens, context);
  const { email, subject } = identityOf(tokens.id_token);
  await say(
    context.stderr,
    `You are logged in as ${neutraliseLine(email ?? subject ?? "an unnamed user")}.\n`,
  );
}

async function logInByBrowser(settings: IssuerSettings, flags: LoginFlags, context: CliContext) {
  const { logInWithBrowser } = await import("../../../agent/index.js");
  return await logInWithBrowser({
    settings,
    port: flags.port,
    timeoutMs: flags.timeout,
    signal: context.signal,
    async show(url) {
      await say(context.essentialStderr, `To log in, open this address in a browser:\n\n${url.href}\n\n`);
      if (flags.browser) openBrowser(url, context);
    },
  });
}

async function logInByCode(settings: IssuerSettings, flags: LoginFlags, context: CliContext) {
  const { logInWithCode } = await import("../../../agent/index.js");
  return await logInWithCode({
    settings,
    timeoutMs: flags.timeout,
    signal: context.signal,
    async show({ url, code }) {
      const steps = `To log in, open this address in a browser on any machine:\n\n${neutraliseLine(url)}\n\nand enter this code:\n\n${neutraliseLine(code)}\n\n`;
      await say(context.essentialStderr, `${steps}Never enter a code that somebody else sent you.\n`);
    },
  });
}

async function showStatus({ json }: { json?: boolean }, context: CliContext): Promise<void> {
  const { loginStatus } = await import("../../../agent/index.js");
  const status = await loginStatus(context.environment.brigHome, context.environment);
  if (json === true) await writeJson(context.stdout, status);
  else await write(context.stdout, describeStatus(status));
  if (status.kind === null) context.setExitStatus(1);
}

function describeStatus({ kind, source, file, stored }: LoginStatus): string {
  if (kind === null) return "nobody is logged in\n";
  const login = stored === null ? [] : describeStored(stored, file);
  if (source !== "environment") return `${login.join("\n")}\n`;
  const unused =
    login.length === 0
      ? []
      : [`also stored, but not used while OPENAI_API_KEY is set: ${login[0]}`, ...login.slice(1)];
  return `${["logged in with the API key in OPENAI_API_KEY", ...unused].join("\n")}\n`;
}

function describeStored(
  { kind, email, accountId, plan, issuer, expiresAt }: StoredStatus,
  file: string,
): string[] {
  if (kind === "api-key") return [`logged in with the API key in ${file}`];
  const facts = { email, account: accountId, plan, issuer, "token expires": expiresAt };
  const rows = Object.entries(facts).flatMap(([name, value]) =>
    value === null ? [] : [`  ${name}: ${neutraliseLine(value)}`],
  );
  return [`logged in with ChatGPT, stored in ${file}`, ...rows];
}

function portArgument(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new InvalidArgumentError("It must be a port, 0 to 65535.");
  return port;
}
