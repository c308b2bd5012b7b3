import { resolve } from "node:path";
import type { CliContext } from "../../command/index.js";
import {
  attachTerminal,
  commandDirectory,
  keptNote,
  publishPorts,
  receiptText,
  runOnPipes,
  say,
  setUpBeforeTerminal,
  terminalSize,
} from "../../command/index.js";
import { type BrigError, invalidUsage } from "../../errors.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import type { ExitStatus, Sandbox } from "../../sandbox/index.js";
import { missingKey, type PreparedAgent, prepareAgent } from "./agents/prepare-agent.js";
import { askLine } from "./ask-line.js";
import { trustingArguments, trustOf, writeTrust } from "./configuration/folder-trust.js";
import { copyConfiguration, linkConfiguration, mountsOf, writeLogin } from "./configuration/place-files.js";
import { LoginInForce } from "./login-in-force.js";
import { openWrapped } from "./open-wrapped.js";
import { findHostProgram, type ProgramSearch } from "./program/host-program.js";
import { type InsideView, lookInside } from "./program/look-inside.js";
import { homeWarning, requireSmallHome } from "./sessions/home-size.js";
import { openSession, reopenSession, type WrappedSession } from "./sessions/wrapped-sessions.js";
import { recordOf, resumedCall, type WrapCall } from "./wrap-call.js";
import type { ConfigAccess, WrapFlags } from "./wrap-flags.js";

const NOT_FOUND = 127;

/** Runs the agent to its end, and returns its exit status. */
export async function runWrapped(argv: string[], flags: WrapFlags, context: CliContext): Promise<number> {
  const { brigHome } = context.environment;
  if (flags.resume !== undefined) {
    using session = await reopenSession(brigHome, flags.resume);
    return await runCall(resumedCall({ argv, flags }, session.record, context), session, context);
  }
  const call: WrapCall = { argv, flags, directory: context.cwd };
  if (flags.name === undefined) return await runCall(call, null, context);
  using session = await openSession(brigHome, flags.name);
  return await runCall(call, session, context);
}

async function runCall(call: WrapCall, session: WrappedSession | null, context: CliContext): Promise<number> {
  const { flags } = call;
  const access = flags.configDir ?? "copy";
  if (flags.setup !== undefined && session !== null && session.record !== null)
    throw setUpAlready(session.name);
  if (session !== null) await requireSmallHome(session, { limit: flags.homeLimit, signal: context.signal });
  const prepared = await prepareAgent(
    {
      ...{ argv: call.argv, agent: flags.agent, secrets: flags.secret ?? [], access },
      ...{ shown: flags.env ?? {}, signal: context.signal },
    },
    context.environment,
  );
  const workspace = flags.workspace === "none" ? null : resolve(call.directory, flags.cd ?? ".");
  const trust = await trustOf(prepared, { argv: call.argv, workspace }, context);
  const found = await programOnHost(prepared, call, context);
  const configurationMounts = access === "read-only" ? mountsOf(prepared.configuration) : [];
  const {
    sandbox: opened,
    configured,
    inspection,
  } = await openWrapped(call, context, {
    prepared,
    hostMounts: [...(found.kind === "found" ? [found.program.mount] : []), ...configurationMounts],
    privateHome: session?.home,
  });
  await using sandbox = opened;
  // The set-up comes first, since it may install the agent, and must not find things that are only for the agent.
  if (flags.setup !== undefined) await setUpBeforeTerminal(sandbox, flags, context);
  const argv = trustingArguments(prepared.argv, trust);
  const inside = await lookInside(sandbox, { argv, found, signal: context.signal });
  if (inside.kind === "missing") {
    await say(context.stderr, `brig: ${inside.message}\n`);
    return NOT_FOUND;
  }
  const isConfigured = session?.record?.isConfigured === true && flags.configDir === undefined;
  if (!isConfigured || access === "read-only")
    await configure(sandbox, { prepared, access, inside, context });
  if (prepared.login !== null)
    await writeLogin(sandbox, prepared.login, { home: inside.home, signal: context.signal });
  if (trust !== null) await writeTrust(sandbox, trust, { home: inside.home, signal: context.signal });
  const { login } = prepared;
  using inForce =
    login?.kind === "chatgpt" && inspection !== null ? new LoginInForce(login.login, inspection) : null;
  const begun = recordOf(call, prepared, session?.record ?? null);
  await session?.save(begun);
  await say(context.stderr, introduction(prepared, { inside, session, isConfigured, configured }));
  if (lacksLogin(prepared, configured)) await waitBefore(prepared, context);
  const label = { session: session?.name ?? null, command: call.argv.join(" ") };
  await publishPorts(sandbox, { publish: flags.publish, ...label }, context);
  const status = await runInside(sandbox, { prepared, inside, call }, context);
  await session?.save({ ...begun, exitCode: status.exitCode, usedAt: new Date().toISOString() });
  if (inForce?.failure != null)
    await say(
      context.stderr,
      neutralise(`brig: the login with ChatGPT could not be renewed: ${inForce.failure}\n`),
    );
  if (flags.keep === true) await say(context.stderr, keptNote(sandbox));
  await say(context.stderr, receiptText(await sandbox.close()));
  if (session !== null) await say(context.stderr, await homeWarning(session, flags.homeLimit));
  return status.exitCode;
}

/** A later set-up would obey files that the agent has left, such as a package manager's settings, with its own network. */
function setUpAlready(name: string): BrigError {
  return invalidUsage(
    `the session ${name} has begun already, and a set-up comes before everything else`,
    "leave out --setup, or begin a session of another --name",
  );
}

/** Finds the agent's program on this machine. Programs that brig does not know are never mounted. */
async function programOnHost(
  { agent, argv }: PreparedAgent,
  { flags, directory }: WrapCall,
  { environment }: CliContext,
): Promise<ProgramSearch> {
  if (agent === null) return { kind: "missing" };
  const workspace = flags.workspace === "none" ? [] : [resolve(directory, flags.cd ?? ".")];
  return await findHostProgram(argv[0] ?? "", {
    searchPath: environment.variables.PATH ?? "",
    writable: [...workspace, ...(flags.addDir ?? []).map((one) => resolve(directory, one))],
  });
}

interface Configuring {
  prepared: PreparedAgent;
  access: ConfigAccess;
  inside: InsideView & { kind: "ready" };
  context: CliContext;
}

async function configure(
  sandbox: Sandbox,
  { prepared, access, inside, context }: Configuring,
): Promise<void> {
  const { configuration } = prepared;
  const place = { home: inside.home, signal: context.signal };
  if (access === "copy") await copyConfiguration(sandbox, configuration, place);
  if (access === "read-only") await linkConfiguration(sandbox, configuration, place);
}

interface Running {
  prepared: PreparedAgent;
  inside: InsideView & { kind: "ready" };
  call: WrapCall;
}

async function runInside(
  sandbox: Sandbox,
  { prepared, inside, call: { flags } }: Running,
  context: CliContext,
): Promise<ExitStatus> {
  const { stdin, stdout, environment, signal } = context;
  const { TERM = "xterm", COLORTERM } = environment.variables;
  const terminal = COLORTERM === undefined ? { TERM } : { TERM, COLORTERM };
  const { argv } = inside;
  const cwd = commandDirectory(flags);
  const env = { ...prepared.variables, ...flags.env };
  if (stdin.isTTY !== true || stdout.isTTY !== true)
    return await runOnPipes(
      sandbox,
      // A program without a terminal gets no input if only standard input is a terminal.
      { argv, cwd, env, timeoutMs: flags.timeout, takesInput: stdin.isTTY !== true },
      context,
    );
  const program = await sandbox.spawn(argv, {
    cwd,
    env: { ...terminal, ...env },
    timeoutMs: flags.timeout,
    signal,
    pty: terminalSize(stdout),
  });
  return await attachTerminal(program, context, { takesInput: true });
}

function lacksKey({ missing }: PreparedAgent, configured: ReadonlySet<string>): boolean {
  return missing.length > 0 && !missing.some((name) => configured.has(name));
}

/** Whether Codex would ask for a login that cannot succeed inside. */
function lacksLogin(prepared: PreparedAgent, configured: ReadonlySet<string>): boolean {
  return prepared.agent?.name === "codex" && lacksKey(prepared, configured);
}

/** Says what makes the agent work, and waits at a terminal until that has been read: the agent's screen hides it. */
async function waitBefore({ agent }: PreparedAgent, context: CliContext): Promise<void> {
  const { stdin, stdout, stderr } = context;
  const name = agent?.name ?? "the agent";
  await say(
    stderr,
    `brig: ${name} cannot reach its model that way. This logs in with a ChatGPT plan, whose tokens stay outside:\n\n  brig login\n\n`,
  );
  if (stdin.isTTY !== true || stdout.isTTY !== true) return;
  await askLine(`Enter starts ${name} all the same, ctrl-C ends it here `, context);
}

interface Introduced {
  inside: InsideView & { kind: "ready" };
  session: WrappedSession | null;
  isConfigured: boolean;
  /** The environment variables that get placeholders for the secrets of config.toml. */
  configured: ReadonlySet<string>;
}

/** Notes for the user, printed before the agent takes over the terminal. */
function introduction(
  prepared: PreparedAgent,
  { inside, session, isConfigured, configured }: Introduced,
): string {
  const { agent, keys, configuration, notes, missing } = prepared;
  const own = new Set(keys.map(({ variable }) => variable));
  const lines = [
    ...(inside.mountedFrom === null
      ? []
      : [`the program is ${inside.mountedFrom} of this machine, mounted read-only`]),
    ...keys.map(
      ({ variable, hosts }) => `${variable} stays outside, and is sent to ${hosts.join(", ")} only`,
    ),
    ...[...configured].map((name) =>
      own.has(name)
        ? `the secret ${name} of config.toml is not used, since the agent's key has the same name`
        : `${name} is a secret of config.toml, which stays outside`,
    ),
    ...(lacksKey(prepared, configured) ? [missingKey(agent, missing)] : []),
    ...(isConfigured ? [] : configuration.leftOut.map((one) => `left out of the configuration: ${one}`)),
    ...notes,
    ...(session === null && agent !== null
      ? [`${agent.name} forgets its history at exit; --name work keeps it`]
      : []),
  ];
  return lines.map((line) => `brig: ${neutraliseLine(line)}\n`).join("");
}
