import { randomInt } from "node:crypto";
import { BrigError, isBrigError } from "../errors.js";
import { type OptionNames, refuseUnknownOptions } from "../known-options.js";
import type { TruncationPolicy } from "../output/truncation.js";
import { createTools, type NameOfTool, type ToolDependencies, type ToolOf } from "./catalogue.js";
import { CommandSessions } from "./command/command-sessions.js";
import { MissingPrograms } from "./command/missing-programs.js";
import { DEFAULT_MAX_POLL_MS } from "./command/session-report.js";
import { findUserShell, type UserShell } from "./command/user-shell.js";
import { strictSchema } from "./json-schema.js";
import type { PatchInterceptionNeeds } from "./patch/patch-interception.js";
import { createPatcher } from "./patch/patcher.js";
import { JsKernel } from "./repl/js-kernel.js";
import { KernelSlot } from "./repl/kernel-slot.js";
import { type ActionReview, unreviewed } from "./review/approval.js";
import type { AskedUser } from "./session/request-user-input.js";
import type { Tool, ToolSpec } from "./tool.js";
import { failure, failureOutput } from "./tool-failure.js";
import { defaultGates, isOffered, mergeGates, nobodyToAsk, refusalOf, type ToolGates } from "./tool-gates.js";
import type { ToolSandbox } from "./tool-sandbox.js";

const CHUNK_IDS = 0x1_00_00_00;

/** Options of the tools. Only `cwd` is required. */
export interface ToolRegistryOptions {
  /** Absolute path inside the sandbox that relative paths start from. */
  cwd: string;
  /** Variables that every command gets in addition to those of the sandbox. Default: none. */
  environment?: Readonly<Record<string, string>> | undefined;
  /** How much of an output the model receives. Default: 10 000 tokens. */
  truncation?: TruncationPolicy | undefined;
  /** Whether a login shell may run scripts; if so, it does by default. Default: true. */
  allowsLoginShell?: boolean | undefined;
  /** Whether the model receives images in their original size. Default: each call decides. */
  takesOriginalPictures?: boolean | undefined;
  /** The longest that `write_stdin` waits for output. Default: 300 000; at least 5000. */
  maxPollMs?: number | undefined;
  /** Which tools are on. Default: as `brig tools` lists them. */
  gates?: ToolGates | undefined;
  /** Who answers `request_user_input`. Default: nobody. */
  user?: AskedUser | undefined;
  /** Decides about commands and patches. Default: all run in the sandbox; none may leave it. */
  review?: ActionReview | undefined;
  /**
   * Returns the sandbox with full access, for actions that the review lets leave the first sandbox. Called
   * for each such action, so it should always return the same sandbox.
   */
  escalatedSandbox?: (() => Promise<ToolSandbox>) | undefined;
  /** Returns an integer from `min` to `max - 1`, for session and chunk ids. Default: a random one. */
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

/** The tools of one sandbox. Closing it, or the sandbox, ends the command sessions that are still running. */
export interface ToolRegistry {
  /** Throws `tool.unknown` if there is no such tool. For a string literal that is a type error instead. */
  get<Name extends string>(name: NameOfTool<Name>): ToolOf<Name>;
  has(name: string): boolean;
  getToolNames(): string[];
  getAll(): Tool[];
  /** Declares the tools that are on. `strict` is for endpoints and SDKs that accept only strict schemas. */
  getSpecs(options?: { strict?: boolean }): ToolSpec[];
  /** The answer to a model that calls a tool which is off; null for a tool that it may call. */
  refusalOf(name: string): string | null;
  close(): Promise<void>;
}

/** The sandbox may still be starting: the first call that needs it waits for it. */
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
  const dependencies = createDependencies(sandbox, options, {
    gates,
    async callTool(name, args, call) {
      const refusal = registry.refusalOf(name);
      if (refusal !== null) return failure(refusal);
      try {
        return await registry.get(name).execute(args, call);
      } catch (error) {
        return failureOutput(error);
      }
    },
  });
  const { tools, find } = createTools(dependencies);
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
      await Promise.all([dependencies.sessions.close(), dependencies.jsKernel.reset()]);
    },
  };
  return registry;
}

function strictSpec(spec: ToolSpec): ToolSpec {
  return spec.type === "function"
    ? { ...spec, strict: true, parameters: strictSchema(spec.parameters) }
    : spec;
}

async function escalatedSandbox({ escalatedSandbox: open }: ToolRegistryOptions): Promise<ToolSandbox> {
  if (open === undefined)
    throw new BrigError("this session has no sandbox with full access", {
      code: "tool.failed",
      hint: "pass the option escalatedSandbox, or a review that never chooses it",
    });
  try {
    return endingEachTree(await open());
  } catch (error) {
    if (!isBrigError(error) || error.code === "aborted") throw error;
    // The code lets the model read this and go on without that sandbox.
    throw new BrigError(`the sandbox with full access could not be started: ${error.message}`, {
      code: "tool.failed",
      hint: error.hint,
      cause: error,
    });
  }
}

/**
 * Commands that nobody has approved run in the other sandbox, which shares files with this one. No process
 * may stay here that they could communicate with.
 */
function endingEachTree(sandbox: ToolSandbox): ToolSandbox {
  return {
    files: sandbox.files,
    spawn: (argv, options) => sandbox.spawn(argv, { ...options, endsTree: true }),
  };
}

function createDependencies(
  sandbox: ToolSandbox | Promise<ToolSandbox>,
  options: ToolRegistryOptions,
  { gates, callTool }: Pick<ToolDependencies, "callTool"> & { gates: ToolGates },
): ToolDependencies {
  const random = options.random ?? randomInt;
  let shell: Promise<UserShell> | undefined;
  const dependencies: ToolDependencies = {
    cwd: options.cwd,
    environment: options.environment ?? {},
    truncation: options.truncation ?? { mode: "tokens", limit: 10_000 },
    allowsLoginShell: options.allowsLoginShell ?? true,
    takesOriginalPictures: options.takesOriginalPictures ?? null,
    maxPollMs: options.maxPollMs ?? DEFAULT_MAX_POLL_MS,
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
    jsKernel: new KernelSlot(() => JsKernel.start(dependencies)),
    callTool,
  };
  return dependencies;
}

function patchFormOf({ apply_patch: setting }: ToolGates): PatchInterceptionNeeds["patchForm"] {
  if (setting === false) return null;
  return setting === "function" ? "function" : "freeform";
}
