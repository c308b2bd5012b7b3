import { randomInt } from "node:crypto";
import { BrigError, isBrigError } from "../errors.js";
import { type OptionNames, refuseUnknownOptions } from "../known-options.js";
import type { TruncationPolicy } from "../sandbox/index.js";
import { clipped } from "../sandbox/index.js";
import { agentToolNames, inNamespace } from "./agents/agent-namespace.js";
import type { Agents } from "./agents/agents.js";
import { createTools, type NameOfTool, type ToolDependencies, type ToolOf } from "./catalogue.js";
import { MissingPrograms } from "./command/command-output.js";
import { CommandSessions } from "./command/command-sessions.js";
import { DEFAULT_MAX_POLL_MS } from "./command/session-report.js";
import { findUserShell, type UserShell } from "./command/shell.js";
import { strictSchema } from "./json-schema.js";
import { MaskedTools } from "./masked-tools.js";
import type { Elicit, McpServers } from "./mcp/mcp-servers.js";
import { McpToolSet } from "./mcp/mcp-tool-set.js";
import type { PatchInterceptionNeeds } from "./patch/apply-patch-tool.js";
import { createPatcher } from "./patch/patcher.js";
import { JsKernel } from "./repl/js-kernel.js";
import { KernelSlot } from "./repl/kernel-slot.js";
import { type ActionReview, unreviewed } from "./review/approval.js";
import type { AskedUser } from "./session/request-user-input.js";
import { failure, failureOutput, type Tool, type ToolSpec } from "./tool.js";
import {
  defaultGates,
  isOffered,
  mergeGates,
  noAgents,
  nobodyToAsk,
  noForks,
  noMcpServers,
  refusalOf,
  type ToolGates,
} from "./tool-gates.js";
import type { ToolSandbox } from "./tool-sandbox.js";

/** A hint that lists the tools is cut to this, since there may be hundreds of them. */
const HINT_CHARS = 2000;
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
  /** The MCP servers whose tools are offered too. The caller closes them. Default: none. */
  mcp?: McpServers | undefined;
  /** The agents that the session starts. The caller closes them. Default: it can start none. */
  agents?: Agents | undefined;
  /** Whether the model expects the tools for agents in Codex's namespace. Default: false. */
  usesNamespaces?: boolean | undefined;
  /** Answers questions that MCP servers ask during a call. Default: they are declined. */
  elicit?: Elicit | undefined;
  /**
   * The names of the MCP tools that the model has found with `search_tool_bm25`. The registry adds those that
   * it finds or calls. Default: an empty set.
   */
  foundTools?: Set<string> | undefined;
  /**
   * Decides about commands, patches and calls of MCP tools. Default: all run in the sandbox; none may leave
   * it.
   */
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
  mcp: true,
  agents: true,
  usesNamespaces: true,
  elicit: true,
  foundTools: true,
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
  /** Offers the tools as another model needs them. Commands and JavaScript that run go on. */
  adapt(
    changed: Pick<ToolRegistryOptions, "gates" | "usesNamespaces" | "takesOriginalPictures" | "truncation">,
  ): void;
  close(): Promise<void>;
}

/** The sandbox may still be starting: the first call that needs it waits for it. */
export function createToolRegistry(
  sandbox: ToolSandbox | Promise<ToolSandbox>,
  options: ToolRegistryOptions,
): ToolRegistry {
  refuseUnknownOptions(options, optionNames, { of: "createToolRegistry" });
  const callTool: ToolDependencies["callTool"] = async (name, args, call) => {
    const refusal = registry.refusalOf(name);
    if (refusal !== null) return failure(refusal);
    try {
      return await registry.get(name).execute(args, call);
    } catch (error) {
      return failureOutput(error);
    }
  };
  const offerFor = (wanted: ToolRegistryOptions, kept: ToolDependencies | null) => {
    const gates = gatesOf(wanted);
    const dependencies = createDependencies(sandbox, wanted, { gates, callTool, kept });
    const made = createTools(dependencies);
    return {
      ...made,
      ...{ options: wanted, gates, dependencies, mcpTools: dependencies.mcpTools },
      offers: new Map(made.tools.map(({ name }) => [name, offerOf(name, gates)])),
    };
  };
  let offer = offerFor(options, null);
  const masked = new MaskedTools(sandbox, { waits: offer.mcpTools !== null });
  const find = (name: string) => offer.byName.get(name) ?? offer.mcpTools?.find(name);
  // Whether there is a search changes with the servers' tools. All else is decided for the whole time with one model.
  const offerNow = (name: string) =>
    name === "search_tool_bm25" && offer.mcpTools !== null
      ? offerOf(name, { ...offer.gates, [name]: offer.mcpTools.isSearched })
      : offer.offers.get(name);
  const all = () => [...offer.tools, ...(offer.mcpTools?.everyTool() ?? [])];
  const registry: ToolRegistry = {
    get<Name extends string>(name: NameOfTool<Name>) {
      const tool = find(name);
      if (tool !== undefined) return masked.over(tool) as ToolOf<Name>;
      throw new BrigError(`unsupported call: ${name}`, {
        code: "tool.unknown",
        hint: `the tools are ${clipped(
          all()
            .map((one) => one.name)
            .join(", "),
          HINT_CHARS,
        )}`,
      });
    },
    has: (name) => find(name) !== undefined,
    getToolNames: () => all().map(({ name }) => name),
    getAll: () => all().map((tool) => masked.over(tool)),
    getSpecs({ strict = false } = {}) {
      const offered = [
        ...offer.tools.filter(({ name }) => offerNow(name)?.isOffered),
        ...(offer.mcpTools?.offered() ?? []),
      ];
      const specs = offered.map(({ spec }) => (strict ? strictSpec(spec) : spec));
      return gathersAgentTools(offer.gates, offer.options) ? inNamespace(specs) : specs;
    },
    refusalOf(name) {
      const realName = offer.byName.get(name)?.name ?? name;
      return isTooDeep(realName, offer.options) ? null : (offerNow(realName)?.refusal ?? null);
    },
    adapt(changed) {
      offer = offerFor({ ...options, ...changed }, offer.dependencies);
    },
    async close() {
      const { sessions, jsKernel } = offer.dependencies;
      await Promise.all([sessions.close(), jsKernel.reset()]);
    },
  };
  return registry;
}

function gatesOf({ gates = {}, user, mcp, agents }: ToolRegistryOptions): ToolGates {
  return mergeGates([
    defaultGates,
    { source: "options", gates },
    ...(user === undefined ? [nobodyToAsk] : []),
    ...(mcp === undefined ? [noMcpServers] : []),
    ...(agents === undefined || agents.isDeepest ? [noAgents] : []),
    ...(agents?.canFork === true ? [] : [noForks]),
  ]);
}

/**
 * At the deepest level, calls are not refused as turned off. Their tools answer with the depth limit, so the model knows
 * that it has to do the task itself.
 */
function isTooDeep(name: string, { agents, gates }: ToolRegistryOptions): boolean {
  return agents?.isDeepest === true && gates?.multi_agent !== false && agentToolNames.has(name);
}

/** Whether a tool is offered, and the answer to a model that calls it although it may not. */
function offerOf(name: string, gates: ToolGates): { isOffered: boolean; refusal: string | null } {
  return { isOffered: isOffered(name, gates), refusal: refusalOf(name, gates) };
}

function gathersAgentTools({ multi_agent: form }: ToolGates, options: ToolRegistryOptions): boolean {
  return form === "namespace" || (form === true && options.usesNamespaces === true);
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
  {
    gates,
    callTool,
    kept,
  }: Pick<ToolDependencies, "callTool"> & {
    gates: ToolGates;
    /** Those of another model, whose running commands and found programs stay. */
    kept: ToolDependencies | null;
  },
): ToolDependencies {
  const {
    random = randomInt,
    review = unreviewed,
    foundTools = kept?.foundTools ?? new Set<string>(),
    truncation = { mode: "tokens", limit: 10_000 },
  } = options;
  let shell: Promise<UserShell> | undefined;
  const dependencies: ToolDependencies = {
    cwd: options.cwd,
    environment: options.environment ?? {},
    truncation,
    allowsLoginShell: options.allowsLoginShell ?? true,
    takesOriginalPictures: options.takesOriginalPictures ?? null,
    maxPollMs: options.maxPollMs ?? DEFAULT_MAX_POLL_MS,
    sessions: kept?.sessions ?? new CommandSessions(random),
    missingPrograms: kept?.missingPrograms ?? new MissingPrograms(),
    patcher: kept?.patcher ?? createPatcher(async () => (await sandbox).files),
    patchForm: patchFormOf(gates),
    searchesLive: gates.web_search === "live",
    user: options.user ?? null,
    agents: options.agents ?? null,
    sandbox: async (place = "sandbox") => await (place === "sandbox" ? sandbox : escalatedSandbox(options)),
    review,
    shell() {
      shell ??= Promise.resolve(sandbox).then(findUserShell);
      return shell;
    },
    mcp: options.mcp ?? null,
    foundTools,
    mcpTools:
      options.mcp === undefined
        ? null
        : new McpToolSet({
            mcp: options.mcp,
            foundTools,
            searchesTools: gates.search_tool_bm25 ?? null,
            elicit: options.elicit ?? null,
            review,
            truncation,
          }),
    nextChunkId: () => random(0, CHUNK_IDS).toString(16).padStart(6, "0"),
    jsKernel: kept?.jsKernel ?? new KernelSlot(() => JsKernel.start(dependencies)),
    callTool,
  };
  return dependencies;
}

function patchFormOf({ apply_patch: setting }: ToolGates): PatchInterceptionNeeds["patchForm"] {
  if (setting === false) return null;
  return setting === "function" ? "function" : "freeform";
}
