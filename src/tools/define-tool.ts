import { posix } from "node:path";
import type { z } from "zod";
import { BrigError } from "../errors.js";
import { withoutMark } from "../lib/utf8.js";
import type { TruncationPolicy } from "../sandbox/index.js";
import { jsonSchemaOf } from "./json-schema.js";
import type { SandboxPlace } from "./review/action.js";
import type { ActionReview } from "./review/approval.js";
import type { Tool, ToolCallOptions, ToolOutput, ToolSpec } from "./tool.js";
import type { ToolSandbox } from "./tool-sandbox.js";

/** The real name of a parameter, optionally with a function that converts the value. */
export type ParameterAliases = Readonly<
  Record<string, string | { parameter: string; convert(value: unknown): unknown }>
>;

export interface ToolDefinition<Parameters extends z.ZodObject, Output extends ToolOutput = ToolOutput> {
  name: string;
  description: string;
  /** Unknown keys are ignored, as models send them. */
  parameters: Parameters;
  /** Other names of parameters, accepted but not advertised: other → real. */
  parameterAliases?: ParameterAliases;
  /** Parameters that are accepted but not advertised. Default: none. */
  hiddenParameters?: readonly string[] | undefined;
  supportsParallel: boolean;
  /** The declaration for a model. Default: a function with these parameters. */
  spec?: ToolSpec | undefined;
  /** As in `Tool`. Default: false. */
  isFreeform?: boolean | undefined;
  /** As in `Tool`. Default: false. */
  takesBlank?: boolean | undefined;
  /** As in `Tool`. Default: false. */
  changesNoFiles?: boolean | undefined;
  /** As in `Tool`, for arguments that are valid. */
  changedFiles?: ((args: z.output<Parameters>) => readonly string[] | null) | undefined;
  /** As in `Tool`, for arguments that are valid. */
  orderedBy?: ((args: z.output<Parameters>) => string) | undefined;
  run(args: z.output<Parameters>, call: ToolCallOptions): Promise<Output>;
}

/** The arguments of a tool as a program passes them; its lists may be readonly. */
export type ArgumentsOf<Parameters extends z.ZodObject> = ReadonlyLists<z.input<Parameters>>;

type ReadonlyLists<Value> = Value extends readonly (infer Item)[]
  ? readonly ReadonlyLists<Item>[]
  : Value extends object
    ? { [Key in keyof Value]: ReadonlyLists<Value[Key]> }
    : Value;

export function defineTool<Parameters extends z.ZodObject, Output extends ToolOutput>(
  definition: ToolDefinition<Parameters, Output>,
): Tool<Output, ArgumentsOf<Parameters>> {
  const {
    name,
    description,
    parameters,
    supportsParallel,
    isFreeform = false,
    takesBlank = false,
    changesNoFiles = false,
  } = definition;
  let { spec } = definition;
  const normal = (args: unknown) => normalise(args, definition.parameterAliases ?? {});
  const ifValid = <Answer>(question: ((args: z.output<Parameters>) => Answer) | undefined) =>
    question &&
    ((args: unknown) => {
      const parsed = parameters.safeParse(normal(args));
      return parsed.success ? question(parsed.data) : null;
    });
  return {
    name,
    description,
    supportsParallel,
    isFreeform,
    takesBlank,
    changesNoFiles,
    // Made on demand: it is most of the work of creating a tool, and most registries never ask for it.
    get spec() {
      spec ??= {
        type: "function",
        name,
        description,
        strict: false,
        parameters: jsonSchemaOf(parameters, definition.hiddenParameters),
      };
      return spec;
    },
    changedFiles: ifValid(definition.changedFiles),
    orderedBy: ifValid(definition.orderedBy),
    async execute(args, call = {}) {
      call.signal?.throwIfAborted();
      const given = normal(args);
      const parsed = parameters.safeParse(given);
      if (!parsed.success) throw invalidInput(faultsOf(parsed.error, given), parsed.error);
      return await definition.run(parsed.data, call);
    },
  };
}

/** Parses the JSON text in which a model sends its arguments. */
export function parseArguments(text: string): unknown {
  try {
    return JSON.parse(withoutMark(text));
  } catch (cause) {
    throw invalidInput(String(cause), cause);
  }
}

/** Renames aliases; the real name wins. Null counts as absent, since models send it for that. */
function normalise(args: unknown, aliases: ParameterAliases): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args;
  const given = Object.entries(args).filter(([, value]) => value !== null);
  const renamed = given.map(([key, value]) => {
    const alias = Object.hasOwn(aliases, key) ? aliases[key] : undefined;
    return typeof alias === "object" ? [alias.parameter, alias.convert(value)] : [alias ?? key, value];
  });
  return { ...Object.fromEntries(renamed), ...Object.fromEntries(given) };
}

/** All that is wrong with arguments, in one line. Models know the words for what is missing from Codex. */
export function faultsOf({ issues }: z.ZodError, args: unknown): string {
  const faults = issues.map(({ path, message }) => {
    const value = path.reduce<unknown>((parent, key) => Object(parent)[key], args);
    if (path.length > 0 && value === undefined) return `missing field \`${String(path.at(-1))}\``;
    return path.length === 0 ? message : `\`${path.map(String).join(".")}\`: ${message}`;
  });
  return faults.join("; ");
}

function invalidInput(reason: string, cause: unknown): BrigError {
  return new BrigError(`failed to parse function arguments: ${reason}`, {
    code: "tool.invalid-input",
    cause,
  });
}

// What several tools need of their session. Each tool declares the ones that it uses.

export interface WorkingDirectory {
  /** Absolute path inside the sandbox. */
  readonly cwd: string;
}

export interface CommandEnvironment {
  /** Variables that every command gets in addition to those of the sandbox. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface SandboxAccess {
  /** Waits until the sandbox has started. Default: the session's own. */
  sandbox(place?: SandboxPlace): Promise<ToolSandbox>;
}

export interface Reviewed {
  readonly review: ActionReview;
}

export interface OutputLimit {
  readonly truncation: TruncationPolicy;
}

/** Full access includes the network, so the variable with which Codex denies that is unset there. */
export function environmentIn(
  { environment }: CommandEnvironment,
  place: SandboxPlace,
): Readonly<Record<string, string | undefined>> {
  if (place === "sandbox") return environment;
  return { ...environment, CODEX_SANDBOX_NETWORK_DISABLED: undefined };
}

/** An empty `workdir` means the default. */
export function workdirOf({ cwd }: WorkingDirectory, workdir: string | null | undefined): string {
  return posix.resolve(cwd, workdir ?? "");
}

/** Does not resolve `..`, which depends on where symbolic links lead: the kernel does that. */
export function absolutePath(cwd: string, path: string): string {
  const joined = path.startsWith("/") ? path : `${cwd}/${path}`;
  return joined.split("/").includes("..") ? joined : posix.resolve(joined);
}
