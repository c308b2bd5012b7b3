import { realpath, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { AgentEvent } from "../agent/events.js";
import { JsonEvents } from "../agent/jsonl-events.js";
import type { SessionSetting } from "../agent/prompt.js";
import { type AgentResult, runAgent } from "../agent/run-agent.js";
import { openSessionFile } from "../agent/session-file.js";
import { createThreadId } from "../agent/thread-id.js";
import type { Config } from "../config/config-schema.js";
import { loadConfig } from "../config/load-config.js";
import { BrigError } from "../errors.js";
import { formatDuration } from "../lib/durations.js";
import { neutralise } from "../lib/terminal.js";
import type { ModelClient } from "../model/model-client.js";
import { profileOf } from "../model/model-profile.js";
import { resolveProvider } from "../model/resolve-provider.js";
import { createResponsesClient } from "../model/responses-client.js";
import { loadScript } from "../model/script.js";
import { createScriptedClient } from "../model/scripted-client.js";
import { loadPolicy } from "../policy/load-policy.js";
import { parseNetwork } from "../policy/network.js";
import { DEFAULT_MODE } from "../policy/policy.js";
import type { SandboxOptions } from "../sandbox/open-sandbox.js";
import { Sandbox } from "../sandbox/sandbox.js";
import { BYTES_PER_TOKEN, type TruncationPolicy } from "../tools/truncation.js";
import { readVersion } from "../version.js";
import { terminalUser } from "./ask-user.js";
import type { CliContext } from "./context.js";
import { describeError } from "./errors.js";
import { exitStatusOf } from "./exit-status.js";
import { write } from "./render.js";
import { RunDisplay } from "./run-display.js";
import { readImages, readOutputSchema, readPrompt } from "./run-input.js";
import {
  addSandboxOptions,
  commandDirectory,
  keptNote,
  type SandboxFlags,
  sandboxOptions,
} from "./sandbox-options.js";
import { canAsk, configuredGates, DEFAULT_MODEL } from "./tool-settings.js";

interface RunFlags extends SandboxFlags {
  model?: string;
  profile?: string;
  config?: string[];
  json?: boolean;
  outputLastMessage?: string;
  outputSchema?: string;
  script?: string;
  image?: string[];
}

export function defineRun(command: Command, context: CliContext): void {
  addSandboxOptions(command)
    .argument("[prompt]", "what to do; without it, or with -, it is read from standard input")
    .option("-m, --model <name>", `the model to ask (default: the configuration's, else ${DEFAULT_MODEL})`)
    .option("-p, --profile <name>", "a profile of config.toml")
    .addOption(
      new Option(
        "-c, --config <key=value>",
        "a key of config.toml, the value as TOML; may be repeated",
      ).argParser(collect),
    )
    .addOption(
      new Option("-i, --image <file>", "a picture for the model; may be repeated").argParser(collect),
    )
    .option("--json", "print events as JSON, one to a line, and nothing else on stdout")
    .option("-o, --output-last-message <file>", "write the final message to a file as well")
    .option("--output-schema <file>", "a JSON Schema for the final message")
    .option("--script <file>", "play a script instead of asking a model")
    .action(async (prompt: string | undefined, flags: RunFlags) => {
      await runCommand(prompt, flags, context);
    });
}

async function runCommand(argument: string | undefined, flags: RunFlags, context: CliContext): Promise<void> {
  try {
    const result = await runSession(argument, flags, context);
    await finish(result, flags, context);
  } catch (error) {
    if (flags.json !== true || !(error instanceof BrigError)) throw error;
    await write(context.stdout, `${JSON.stringify({ type: "error", message: error.message })}\n`);
    await write(context.stderr, describeError(error, { showsCauses: false }));
    context.setExitStatus(context.interruption()?.exitStatus ?? exitStatusOf(error));
  }
}

async function runSession(
  argument: string | undefined,
  flags: RunFlags,
  context: CliContext,
): Promise<AgentResult> {
  const { environment, cwd, stderr, signal } = context;
  const prompt = await readPrompt(argument, context);
  const { config, warnings } = await loadConfig(environment, {
    profile: flags.profile,
    overrides: flags.config,
  });
  for (const warning of warnings) await write(stderr, `brig: ${neutralise(warning)}\n`);
  const sandbox = configuredSandbox(flags, config, context);
  const setting = await describeSetting(sandbox, flags, context);
  const threadId = createThreadId(new Date());
  const model = await openModel(flags, { config, context, threadId });
  const images = await readImages(flags.image ?? [], cwd);
  const outputSchema =
    flags.outputSchema === undefined ? undefined : await readOutputSchema(resolve(cwd, flags.outputSchema));
  const session = openSessionFile({ home: environment.brigHome, threadId, now: () => new Date() });
  return await runAgent({
    prompt,
    images,
    model,
    sandbox: () => openSandbox(sandbox, flags, context),
    setting,
    truncation: configuredTruncation(config, model.model),
    toolOptions: {
      allowsLoginShell: config.allow_login_shell,
      gates: configuredGates(config, { hasFullAccess: setting.sandboxMode === "danger-full-access" }),
      user: canAsk(context) ? terminalUser(context) : undefined,
    },
    outputSchema,
    signal,
    session,
    threadId,
    onEvent: createListener(flags, context),
  });
}

async function openModel(
  flags: RunFlags,
  { config, context, threadId }: { config: Config; context: CliContext; threadId: string },
): Promise<ModelClient> {
  if (flags.script !== undefined)
    return createScriptedClient(await loadScript(resolve(context.cwd, flags.script)));
  return createResponsesClient({
    provider: resolveProvider(config, context.environment),
    model: flags.model ?? config.model ?? DEFAULT_MODEL,
    threadId,
    userAgent: `brig/${readVersion()}`,
    settings: {
      reasoningEffort: config.model_reasoning_effort,
      reasoningSummary: config.model_reasoning_summary,
      verbosity: config.model_verbosity,
      serviceTier: config.service_tier,
    },
  });
}

/** The flags, and the configuration where they say nothing. */
function configuredSandbox(flags: RunFlags, config: Config, context: CliContext): SandboxOptions {
  const options = sandboxOptions(flags, context);
  const mode = options.mode ?? (flags.policy === undefined ? config.sandbox_mode : undefined);
  const workspaceWrite = config.sandbox_workspace_write;
  const isWorkspaceWrite = flags.policy === undefined && (mode ?? DEFAULT_MODE) === "workspace-write";
  const opensNetwork = isWorkspaceWrite && workspaceWrite?.network_access === true;
  return {
    ...options,
    mode,
    network: options.network ?? (opensNetwork ? "full" : undefined),
    writableRoots: workspaceWrite?.writable_roots.map((root) => resolve(context.cwd, root)),
  };
}

/** `tool_output_token_limit` counts tokens, whatever the model's own policy counts. */
function configuredTruncation(
  { tool_output_token_limit: tokens }: Config,
  model: string,
): TruncationPolicy | undefined {
  if (tokens === undefined) return undefined;
  return profileOf(model).truncation.mode === "tokens"
    ? { mode: "tokens", limit: tokens }
    : { mode: "bytes", limit: tokens * BYTES_PER_TOKEN };
}

/** What the model is told before there is a sandbox to ask. */
async function describeSetting(
  options: SandboxOptions,
  flags: RunFlags,
  { environment }: CliContext,
): Promise<SessionSetting> {
  const loaded = await loadPolicy(options.policyFile ?? options.mode ?? DEFAULT_MODE);
  const wanted = options.network === undefined ? null : parseNetwork(options.network);
  const takesRoots = loaded.policy.overrides.writableRoots;
  return {
    cwd:
      options.workspace === undefined
        ? (commandDirectory(flags) ?? "/")
        : await physicalPath(options.workspace),
    sandboxMode: loaded.name,
    network: wanted?.kind === "parsed" ? wanted.network : loaded.policy.network,
    writableRoots: [...(options.addDirs ?? []), ...(takesRoots ? (options.writableRoots ?? []) : [])],
    shell: "bash",
    timezone: environment.timezone,
  };
}

/** A workspace that is not there is the sandbox's to complain about. */
async function physicalPath(path: string): Promise<string> {
  return await realpath(path).catch(() => path);
}

async function openSandbox(
  options: SandboxOptions,
  flags: RunFlags,
  { stderr }: CliContext,
): Promise<Sandbox> {
  const sandbox = await Sandbox.create(options);
  if (flags.keep === true) await write(stderr, keptNote(sandbox));
  return sandbox;
}

function createListener({ json }: RunFlags, context: CliContext): (event: AgentEvent) => void {
  if (json === true) {
    const events = new JsonEvents();
    return (event) => {
      for (const line of events.translate(event)) context.stdout.write(`${JSON.stringify(line)}\n`);
    };
  }
  const display = new RunDisplay(context.stderr, { usesColour: usesColour(context) });
  return (event) => {
    display.show(event);
  };
}

function usesColour({ stderr, environment }: CliContext): boolean {
  return stderr.isTTY === true && !environment.forbidsColor && !environment.isContinuousIntegration;
}

async function finish(result: AgentResult, flags: RunFlags, context: CliContext): Promise<void> {
  if (flags.json !== true) await write(context.stderr, summary(result));
  if (result.status === "interrupted") {
    if (flags.json !== true) throw context.signal.reason;
    context.setExitStatus(context.interruption()?.exitStatus ?? 130);
    return;
  }
  if (result.error !== undefined) {
    if (flags.json !== true) throw result.error;
    context.setExitStatus(exitStatusOf(result.error));
    return;
  }
  await deliver(result.lastMessage ?? "", flags, context);
}

async function deliver(message: string, flags: RunFlags, context: CliContext): Promise<void> {
  if (flags.outputLastMessage !== undefined) {
    if (message === "") await write(context.stderr, "brig: there was no final message: the file is empty\n");
    await writeMessage(resolve(context.cwd, flags.outputLastMessage), message);
  }
  if (flags.json === true || message === "") return;
  const text = message.endsWith("\n") ? message : `${message}\n`;
  await write(context.stdout, context.stdout.isTTY === true ? neutralise(text) : text);
}

async function writeMessage(file: string, message: string): Promise<void> {
  try {
    await writeFile(file, message);
  } catch (cause) {
    throw new BrigError(`the final message cannot be written to ${file}`, { code: "usage.invalid", cause });
  }
}

function summary({ toolCalls, callLatenciesMs, usage, sessionFile }: AgentResult): string {
  const median = medianOf(callLatenciesMs);
  const parts = [
    `${toolCalls} tool ${toolCalls === 1 ? "call" : "calls"}`,
    ...(median === null ? [] : [`median ${formatDuration(median)}`]),
    ...(usage.inputTokens === 0 ? [] : [`${usage.inputTokens} tokens in, ${usage.outputTokens} out`]),
  ];
  return `${parts.join(" · ")}\nsession file ${sessionFile ?? "none"}\n`;
}

function medianOf(numbers: readonly number[]): number | null {
  const sorted = numbers.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.ceil(sorted.length / 2) - 1];
  return upper === undefined || lower === undefined ? null : (upper + lower) / 2;
}

function collect(value: string, earlier: string[] = []): string[] {
  return [...earlier, value];
}
