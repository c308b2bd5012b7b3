import type { z } from "zod";
import { BrigError } from "../errors.js";
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

export function defineTool<Parameters extends z.ZodObject, Output extends ToolOutput>(
  definition: ToolDefinition<Parameters, Output>,
): Tool<Output> {
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
      spec ??= { type: "function", name, description, strict: false, parameters: jsonSchemaOf(parameters) };
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
      if (!parsed.success) throw invalidArguments(describeIssues(parsed.error), parsed.error);
      return await definition.run(parsed.data, call);
    },
  };
}

/** Parses the JSON text in which a model sends its arguments. */
export function parseArguments(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw invalidArguments(cause instanceof Error ? cause.message : String(cause), cause);
  }
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

function describeIssues(error: z.ZodError): string {
  return error.issues
    .map((issue) => {
      const path = issue.path.map(String).join(".");
      if (isMissing(issue)) return `missing field \`${path}\``;
      return path === "" ? issue.message : `\`${path}\`: ${issue.message}`;
    })
    .join("; ");
}

function isMissing(issue: z.core.$ZodIssue): boolean {
  return (
    issue.code === "invalid_type" && issue.path.length > 0 && issue.message.endsWith("received undefined")
  );
}

function invalidArguments(reason: string, cause: unknown): BrigError {
  return new BrigError(`failed to parse function arguments: ${reason}`, {
    code: "tool.invalid-input",
    cause,
  });
}
