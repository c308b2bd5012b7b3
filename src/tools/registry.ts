import { randomInt } from "node:crypto";
import { BrigError, isBrigError } from "../errors.js";
import { type OptionNames, refuseUnknownOptions } from "../known-options.js";
import type { TruncationPolicy } from "../output/truncation.js";
import { answer } from "./answer.js";
import { makeTools, type NameOfTool, type SharedParts, type ToolOf } from "./catalogue.js";
import { CommandSessions } from "./command/command-sessions.js";
import { MissingPrograms } from "./command/missing-programs.js";
import { MAX_POLL_MS } from "./command/session-report.js";
import { findUserShell, type UserShell } from "./command/user-shell.js";
import { strictSchema } from "./json-schema.js";
import type { PatchInterceptionNeeds } from "./patch/patch-interception.js";
import { createPatcher } from "./patch/patcher.js";
import { JsKernel } from "./repl/js-kernel.js";
import { KernelSlot } from "./repl/kernel-slot.js";
import { type ActionReview, unreviewed } from "./review/approval.js";
import type { AskedUser } from "./session/request-user-input.js";
import type { Tool, ToolCallOptions, ToolOutput, ToolSpec } from "./tool.js";
import { defaultGates, isOffered, mergeGates, nobodyToAsk, refusalOf, type ToolGates } from "./tool-gates.js";
import type { ToolSandbox } from "./tool-sandbox.js";

const CHUNK_IDS = 0x1_00_00_00;

/** How tools work. Only the directory has to be named. */
export interface ToolRegistryOptions {
  /** Absolute path inside the sandbox that relative paths start from. */
  cwd: string;
  /** Variables every command gets on top of the sandbox's own. Default: none. */
  environment?: Readonly<Record<string, string>> | undefined;
  /** How much of an output the model is given. Default: 10 000 tokens. */
  truncation?: TruncationPolicy | undefined;
  /** Whether scripts may be run by a login shell, which is then the default. Default: true. */
  allowsLoginShell?: boolean | undefined;
  /** Whether the model takes pictures in their original size, and so gets them. Default: as each call asks. */
  takesOriginalPictures?: boolean | undefined;
  /** How long one look at a running command may wait, in milliseconds. Default: 300 000; less than 5000 counts as 5000. */
  maxPollMs?: number | undefined;
  /** Which tools a model is offered. What is not set is as `brig tools` lists it. */
  gates?: ToolGates | undefined;
  /** Who answers `request_user_input`. Default: nobody. */
  user?: AskedUser | undefined;
  /** Who decides about commands and patches. Default: all run in the sandbox, and asking to leave it is refused. */
  review?: ActionReview | undefined;
  /** Gives the sandbox with full access for what the review lets leave the first. Asked for each such action: remember it. */
  escalatedSandbox?: (() => Promise<ToolSandbox>) | undefined;
  /** Gives an integer from `min` up to but not including `max`, for the ids of sessions and chunks. Default: a random one. */
  random?: ((min: number, max: number) => number) | undefined;
}

const optionNames: OptionNames<ToolRegistryOptions> = {
  cwd: true,
  environment: true,
  truncation: true,
  allowsLoginShell: true,
  takesOriginalPictures: true,
  maxPollMs: true,
  gates: true,
  user: true,
  review: true,
  escalatedSandbox: true,
  random: true,
};

/** The tools of one sandbox. Close it, or the sandbox, to end the command sessions that are still running. */
export interface ToolRegistry {
  /** The tool of that name; `tool.unknown` when there is none, which a name that is written out cannot come to. */
  get<Name extends string>(name: NameOfTool<Name>): ToolOf<Name>;
  has(name: string): boolean;
  getToolNames(): string[];
  getAll(): Tool[];
  /** What a model is told: the tools that are on. `strict` is for endpoints and SDKs that take strict schemas only. */
  getSpecs(options?: { strict?: boolean }): ToolSpec[];
  /** What to answer a model that calls a tool which is off; null for one that it may call. */
  refusalOf(name: string): string | null;
  close(): Promise<void>;
}

/** The sandbox may still be starting: it is waited for when the first call needs it. */
export function createToolRegistry(
  sandbox: ToolSandbox | Promise<ToolSandbox>,
  options: ToolRegistryOptions,
): ToolRegistry {
  refuseUnknownOptions(options, optionNames, { of: "createToolRegistry" });
  const gates = mergeGates([
    defaultGates,
    { source: "options", gates: options.gates ?? {} },
    ...(options.user === undefined ? [nobodyToAsk] : []),
  ]);
  const parts = sharedParts(sandbox, options, {
    gates,
    callTool: (name, args, call) => callTool(registry, { name, args }, call),
  });
  const { tools, find } = makeTools(parts);
  const registry: ToolRegistry = {
    get<Name extends string>(name: NameOfTool<Name>) {
      const tool = find(name);
      if (tool !== undefined) return tool as ToolOf<Name>;
      throw new BrigError(`unsupported call: ${name}`, {
        code: "tool.unknown",
        hint: `the tools are ${tools.map((one) => one.name).join(", ")}`,
      });
    },
    has: (name) => find(name) !== undefined,
    getToolNames: () => tools.map(({ name }) => name),
    getAll: () => [...tools],
    getSpecs: ({ strict = false } = {}) =>
      tools
        .filter(({ name }) => isOffered(name, gates))
        .map(({ spec }) => (strict ? strictSpec(spec) : spec)),
    refusalOf: (name) => refusalOf(find(name)?.name ?? name, gates),
    async close() {
      await Promise.all([parts.sessions.close(), parts.jsKernel.reset()]);
    },
  };
  return registry;
}

function strictSpec(spec: ToolSpec): ToolSpec {
  return spec.type === "function"
    ? { ...spec, strict: true, parameters: strictSchema(spec.parameters) }
    : spec;
}

async function callTool(
  tools: ToolRegistry,
  { name, args }: { name: string; args: unknown },
  call: ToolCallOptions,
): Promise<ToolOutput> {
  const refusal = tools.refusalOf(name);
  if (refusal !== null) return { content: refusal, success: false };
  return await answer(() => tools.get(name).execute(args, call));
}

async function escalatedSandbox({ escalatedSandbox: open }: ToolRegistryOptions): Promise<ToolSandbox> {
  if (open === undefined)
    throw new BrigError("this session has no sandbox with full access", {
      code: "tool.failed",
      hint: "give the registry an escalatedSandbox, or a review that lets nothing leave the sandbox",
    });
  try {
    return leavingNothing(await open());
  } catch (error) {
    if (!isBrigError(error) || error.code === "aborted") throw error;
    // The model can go on without it.
    throw new BrigError(`the sandbox with full access could not be started: ${error.message}`, {
      code: "tool.failed",
      hint: error.hint,
      cause: error,
    });
  }
}

/** What nobody has approved runs in a sandbox that shares files with this one: nothing may be left here that it could speak to. */
function leavingNothing(sandbox: ToolSandbox): ToolSandbox {
  return {
    files: sandbox.files,
    spawn: (argv, options) => sandbox.spawn(argv, { ...options, endsTree: true }),
  };
}

function sharedParts(
  sandbox: ToolSandbox | Promise<ToolSandbox>,
  options: ToolRegistryOptions,
  { gates, callTool }: Pick<SharedParts, "callTool"> & { gates: ToolGates },
): SharedParts {
  const random = options.random ?? randomInt;
  let shell: Promise<UserShell> | undefined;
  const parts: SharedParts = {
    cwd: options.cwd,
    environment: options.environment ?? {},
    truncation: options.truncation ?? { mode: "tokens", limit: 10_000 },
    allowsLoginShell: options.allowsLoginShell ?? true,
    takesOriginalPictures: options.takesOriginalPictures ?? null,
    maxPollMs: options.maxPollMs ?? MAX_POLL_MS,
    sessions: new CommandSessions(random),
    missingPrograms: new MissingPrograms(),
    patcher: createPatcher(async () => (await sandbox).files),
    patchForm: patchFormOf(gates),
    searchesLive: gates.web_search === "live",
    user: options.user ?? null,
    sandbox: async (place = "sandbox") => await (place === "sandbox" ? sandbox : escalatedSandbox(options)),
    review: options.review ?? unreviewed,
    shell() {
      shell ??= Promise.resolve(sandbox).then(findUserShell);
      return shell;
    },
    nextChunkId: () => random(0, CHUNK_IDS).toString(16).padStart(6, "0"),
    jsKernel: new KernelSlot(() => JsKernel.start(parts)),
    callTool,
  };
  return parts;
}

function patchFormOf({ apply_patch: setting }: ToolGates): PatchInterceptionNeeds["patchForm"] {
  if (setting === false) return null;
  return setting === "function" ? "function" : "freeform";
}
