import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import type { Config } from "../../agent/index.js";
import { loadConfig } from "../../agent/index.js";
import type { AttemptAgent, Task } from "../../batch/index.js";
import { commandAgent, nopAgent, oracleAgent, readTasks } from "../../batch/index.js";
import type { CliContext, Interruption } from "../../command/index.js";
import {
  chosenAgent,
  configChoice,
  describeError,
  flaggedLimits,
  openBatchImages,
  say,
  write,
  writeJson,
} from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { readPageAsset } from "../../lib/http/page-html.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { connectEngine, DEFAULT_IMAGE, startPool } from "../../sandbox/index.js";
import { readVersion } from "../../version.js";
import { MemoryBudget } from "./http/memory-budget.js";
import { serveHttp } from "./http/serve-http.js";
import { KEPT_LEASE_SECONDS, type KeptHome, minutesPath, openKeptHome } from "./kept/kept-home.js";
import { newKeptDirectory } from "./kept/kept-records.js";
import { type Access, openAccess } from "./open-access.js";
import { OutputBudget } from "./processes/output-budget.js";
import { measuredRoom } from "./sandboxes/machine-room.js";
import { MinutesFile } from "./sandboxes/minutes-file.js";
import { Needs } from "./sandboxes/needs.js";
import { closedNetwork } from "./sandboxes/replace-network.js";
import { addServeOptions, type ServeFlags } from "./serve-flags.js";
import type { OpenProtocols, ServiceOptions } from "./service-calls.js";
import { openService } from "./service-calls.js";
import { openApiDescription } from "./wire/openapi.js";
import type { EpisodeOptions } from "./wire/schemas.js";

/** `openProtocols` opens what is served besides the routes of the service itself. */
export function defineServe(command: Command, context: CliContext, openProtocols: OpenProtocols): void {
  command.argument("[tasks...]", "tasks that clients may work on: directories of tasks, or files of rows");
  addServeOptions(command)
    .addHelpText("after", HELP)
    .action(async (paths: string[], flags: ServeFlags) => {
      if (flags.openapi === true) return await writeJson(context.stdout, openApiDescription(readVersion()));
      await serve(paths, flags, { ...context, openProtocols });
    });
}

const HELP = `
Programs with the token start sandboxes, run commands in them, read and write files, have an agent work on a task, and grade
what it leaves. The package brigbox has a client (BrigClient), and docs/serve.md describes all requests.

The first ctrl-C or SIGTERM lets calls and episodes that run end, and begins nothing new. The second one ends everything
at once. Either way all sandboxes are removed, unless --keep-sandboxes leaves them to the next service.`;

type ServeContext = CliContext & { openProtocols: OpenProtocols };

async function serve(paths: readonly string[], flags: ServeFlags, context: ServeContext): Promise<void> {
  const onWarning = (error: unknown) =>
    void say(context.stderr, describeError(error, { showsCauses: false }));
  await using access = await openAccess(flags, context, onWarning);
  const tasks = paths.length === 0 ? [] : await servedTasks(paths, context);
  const { config, warnings, notes } = await loadConfig(context.environment, configChoice(flags, context));
  for (const sentence of [...warnings, ...notes])
    await say(context.stderr, `brig: ${neutraliseLine(sentence)}\n`);
  const usualAgent = await openUsualAgent(flags, { config, context });
  const { brigHome } = context.environment;
  const { listen, keepSandboxes: keeps = false, keepSecrets: keepsSecrets = false } = flags;
  if (keepsSecrets && !keeps)
    throw invalidUsage("--keep-secrets is for sandboxes that stay", "add --keep-sandboxes, or leave it out");
  using kept = await openKeptHome(brigHome, { listen, keeps, keepsSecrets });
  const directory = await mkdtemp(join(tmpdir(), "brig-serve-"));
  try {
    await serveUntilDrained(
      { access, tasks, usualAgent, config, directory, kept, onWarning },
      flags,
      context,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface Served {
  access: Access;
  tasks: readonly Task[];
  usualAgent: AttemptAgent | null;
  config: Config;
  directory: string;
  kept: KeptHome | null;
  onWarning: (error: unknown) => void;
}

/** The part of the memory of the service that the kept outputs of processes may take. */
const OUTPUTS_PART = 4;

async function serveUntilDrained(served: Served, flags: ServeFlags, context: ServeContext): Promise<void> {
  const { signal, stderr } = context;
  const { access, onWarning } = served;
  const draining = new AbortController();
  let interruption: Interruption | null = null;
  const outputs = new OutputBudget(flags.maxBuffered / OUTPUTS_PART);
  const isShared = () => access.http.clients().length > 1;
  const memory = new MemoryBudget(flags.maxBuffered, { isShared, outputs });
  await using opened = await serviceOptions(served, flags, { context, memory, outputs });
  const service = openService(opened.options, draining.signal);
  using _first = context.drainFirst((first) => {
    interruption = first;
    draining.abort();
    void say(stderr, "Calls and episodes that run may end; ctrl-C ends them at once.\n");
  });
  try {
    const found = await service.takeOver(signal);
    if (found > 0)
      await say(
        stderr,
        `brig: ${sandboxCount(found)} of an earlier service ${found === 1 ? "goes" : "go"} on\n`,
      );
    await serveHttp({
      ...access.http,
      others: service.others,
      calls: service.calls,
      memory,
      drain: draining.signal,
      signal,
      settled: service.settled,
      ownerOf: service.ownerOf,
      onFault: onWarning,
      page: await readPageAsset("serve-page"),
      onListening: (url) => void announce({ url, ...access.announced }, flags, context),
    });
  } finally {
    const left = await service.close();
    if (left > 0) await say(stderr, leftText(left));
  }
  const first = interruption as Interruption | null;
  if (first !== null) context.setExitStatus(first.exitStatus);
}

function sandboxCount(count: number): string {
  return count === 1 ? "one sandbox" : `${count} sandboxes`;
}

function leftText(count: number): string {
  const [run, them] = count === 1 ? ["runs", "it"] : ["run", "them"];
  const minutes = KEPT_LEASE_SECONDS / 60;
  return `brig: ${sandboxCount(count)} ${run} on for ${minutes} minutes, in which the next brig serve with the same --listen goes on with ${them}\n`;
}

async function serviceOptions(
  { access, tasks, usualAgent, config, directory, kept, onWarning }: Served,
  flags: ServeFlags,
  { context, ...budgets }: { context: ServeContext } & Pick<ServiceOptions, "memory" | "outputs">,
): Promise<{ options: ServiceOptions } & AsyncDisposable> {
  const { environment } = context;
  const { runtime, sandbox: mode, containerImage: image = DEFAULT_IMAGE, env } = flags;
  const limits = flaggedLimits(flags);
  const engine = await connectEngine({ env: environment });
  const images = openBatchImages({}, { engine, config, context });
  const pool =
    flags.warm === 0
      ? null
      : startPool(
          {
            ...{ size: flags.warm, mode, image, runtime, limits, env, engine, onWarning },
            network: closedNetwork(mode, { allowsNetwork: flags.allowNetwork === true }),
            leaseSeconds: kept?.keeps === true ? KEPT_LEASE_SECONDS : undefined,
          },
          kept?.keeps === true ? () => newKeptDirectory(kept.directory) : undefined,
        );
  const minutesFile = flags.tokens === undefined ? null : minutesPath(environment.brigHome, flags.listen);
  return {
    options: {
      places: {
        ...{ engine, environment, runtime, image, mode, limits, env, pool, kept },
        allowsNetwork: flags.allowNetwork === true,
        images: flags.pull === true ? images : null,
        caFiles: config.egress?.ca_files,
      },
      attempts: { tasks, images, engine, environment, runtime, directory },
      openAgent: (wanted) => episodeAgent(wanted, usualAgent),
      openProtocols: context.openProtocols,
      templates: config.templates,
      endsAutoPaused: flags.e2bAutoPause === "end",
      limits: {
        maxPlaces: flags.maxSandboxes,
        maxPerClient: flags.maxPerClient ?? flags.maxSandboxes,
        maxWaiting: flags.maxWaiting,
        idleMs: flags.idle,
        maxLifeMs: flags.maxLife,
      },
      quotaOf: (client) => access.http.clients().find(({ name }) => name === client)?.quota ?? {},
      minutes: minutesFile === null ? undefined : new MinutesFile(minutesFile, { onWarning }),
      room: measuredRoom(engine, {
        count: flags.warm,
        need: await new Needs({ mode, limits }).ofSandbox({}),
      }),
      ...budgets,
      auditLost: () => access.http.audit?.lostCount ?? 0,
      onWarning,
    },
    [Symbol.asyncDispose]: async () => await pool?.close(),
  };
}

function episodeAgent(wanted: EpisodeOptions["agent"], usual: AttemptAgent | null): AttemptAgent {
  if (wanted === "oracle") return oracleAgent();
  if (wanted === "nop") return nopAgent();
  if (wanted !== undefined) return commandAgent(wanted.command);
  if (usual !== null) return usual;
  throw invalidUsage(
    "the request names no agent, and the service was started without one",
    'send agent: "oracle", "nop" or {"command": …}, or start brig serve with --agent',
  );
}

async function openUsualAgent(
  flags: ServeFlags,
  source: { config: Config; context: CliContext },
): Promise<AttemptAgent | null> {
  const { agent, model } = flags;
  if (agent !== undefined) return (await chosenAgent({ model, agent }, source)).agent;
  if (model === undefined) return null;
  throw invalidUsage("--model is for --agent model", "add --agent model, or leave --model out");
}

async function servedTasks(paths: readonly string[], context: CliContext): Promise<Task[]> {
  const { cwd, environment, signal, stderr } = context;
  const tasks = await readTasks(paths, { cwd, variables: environment.variables, signal });
  for (const { name, warnings } of tasks)
    for (const warning of warnings) await say(stderr, `brig: ${neutraliseLine(`${name}: ${warning}`)}\n`);
  return tasks;
}

async function announce(
  facts: { url: string } & Access["announced"],
  { json }: ServeFlags,
  { stdout }: CliContext,
): Promise<void> {
  const e2b = e2bAddresses(facts.url, facts.token);
  if (json === true) return await writeJson(stdout, { ...facts, e2b });
  const { url, token, ca, fingerprint } = facts;
  const { apiUrl: E2B_API_URL, sandboxUrl: E2B_SANDBOX_URL, apiKey: E2B_API_KEY } = e2b;
  const printed = { url, token, ca, fingerprint, E2B_API_URL, E2B_SANDBOX_URL, E2B_API_KEY };
  const known = Object.entries(printed).filter(([, value]) => value !== undefined);
  await write(stdout, known.map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`).join(""));
}

/** What clients of E2B are to be given. Some of them only accept keys with this beginning. */
function e2bAddresses(url: string, token: string | undefined) {
  return { apiUrl: `${url}/e2b`, sandboxUrl: url, apiKey: token === undefined ? undefined : `e2b_${token}` };
}
