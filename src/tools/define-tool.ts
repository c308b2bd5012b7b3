import type { z } from "zod";
import { BrigError, isBrigError } from "../errors.js";
import { argumentFault, syntaxFault, UnfitArguments } from "./argument-fault.js";
import { jsonSchemaOf } from "./json-schema.js";
import type { Tool, ToolCallOptions, ToolOutput, ToolSpec } from "./tool.js";

/** The real name of a parameter, or that and how its value is to be read. */
export type ParameterAliases = Readonly<
  Record<string, string | { parameter: string; read(value: unknown): unknown }>
>;

export interface ToolDefinition<Parameters extends z.ZodObject, Output extends ToolOutput = ToolOutput> {
  name: string;
  description: string;
  /** Unknown keys are ignored, as models send them. */
  parameters: Parameters;
  /** Other spellings of a parameter that are understood but not advertised: other → real. */
  parameterAliases?: ParameterAliases;
  /** Parameters that are understood and not advertised. Default: none. */
  hiddenParameters?: readonly string[] | undefined;
  supportsParallel: boolean;
  /** How it is declared to a model. Default: as a function with these parameters. */
  spec?: ToolSpec | undefined;
  /** Its one parameter is a text, `input`, which a model may also send as it is. Default: false. */
  isFreeform?: boolean | undefined;
  /** See `Tool`. */
  changedFiles?: ((args: z.output<Parameters>) => readonly string[] | null) | undefined;
  /** See `Tool`. */
  orderedBy?: ((args: z.output<Parameters>) => string) | undefined;
  run(args: z.output<Parameters>, call: ToolCallOptions): Promise<Output>;
}

/** The arguments of a tool as a program writes them. */
export type ArgumentsOf<Parameters extends z.ZodObject> = ReadonlyLists<z.input<Parameters>>;

/** A program may give lists that it does not let be changed. */
type ReadonlyLists<Value> = Value extends readonly (infer Item)[]
  ? readonly ReadonlyLists<Item>[]
  : Value extends object
    ? { [Key in keyof Value]: ReadonlyLists<Value[Key]> }
    : Value;

export function defineTool<Parameters extends z.ZodObject, Output extends ToolOutput>(
  definition: ToolDefinition<Parameters, Output>,
): Tool<Output, ArgumentsOf<Parameters>> {
  const { name, description, parameters, supportsParallel, isFreeform = false } = definition;
  const { changedFiles, orderedBy } = definition;
  let { spec } = definition;
  const parse = (args: unknown) => parameters.safeParse(normalise(args, definition.parameterAliases ?? {}));
  return {
    name,
    description,
    supportsParallel,
    isFreeform,
    // Made when it is asked for: of most tools of most registries it never is, and it takes most of the time.
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
    ...(changedFiles === undefined
      ? {}
      : {
          changedFiles(args) {
            const parsed = parse(args);
            return parsed.success ? changedFiles(parsed.data) : null;
          },
        }),
    ...(orderedBy === undefined
      ? {}
      : {
          orderedBy(args) {
            const parsed = parse(args);
            return parsed.success ? orderedBy(parsed.data) : null;
          },
        }),
    async execute(args, call = {}) {
      call.signal?.throwIfAborted();
      const parsed = parse(args);
      if (!parsed.success) {
        const unfit = new UnfitArguments(parsed.error, name);
        throw invalidArguments(argumentFault(unfit, args, null), unfit);
      }
      return await definition.run(parsed.data, call);
    },
  };
}

/** Parses the JSON text in which a model sends its arguments. */
export function parseArguments(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw invalidArguments(syntaxFault(json) ?? String(cause), cause);
  }
}

/** The same refusal of arguments, with the place in the text that they came as. */
export function withPlace(error: unknown, json: string): unknown {
  if (!isBrigError(error, "tool.invalid-input") || !(error.cause instanceof UnfitArguments)) return error;
  return invalidArguments(argumentFault(error.cause, null, json), error.cause);
}

/** Renames aliases, the real name winning; a null counts as absent, since models send it for what they leave out. */
function normalise(args: unknown, aliases: ParameterAliases): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args;
  const given = Object.entries(args).filter(([, value]) => value !== null);
  const renamed = given.map(([key, value]) => {
    const alias = Object.hasOwn(aliases, key) ? aliases[key] : undefined;
    return typeof alias === "object" ? [alias.parameter, alias.read(value)] : [alias ?? key, value];
  });
  return { ...Object.fromEntries(renamed), ...Object.fromEntries(given) };
}

function invalidArguments(reason: string, cause: unknown): BrigError {
  return new BrigError(`failed to parse function arguments: ${reason}`, {
    code: "tool.invalid-input",
    cause,
  });
}
