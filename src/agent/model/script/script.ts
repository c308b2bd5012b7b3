import { readFile } from "node:fs/promises";
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { suggest } from "../../../lib/suggest.js";

const oneOrMore = z.union([z.string(), z.array(z.string()).min(1)]).transform((value) => [value].flat());

const pattern = z.string().transform((source, context) => {
  try {
    return new RegExp(source, "mu");
  } catch (error) {
    context.issues.push({
      code: "custom",
      message: error instanceof Error ? error.message : "",
      input: source,
    });
    return z.NEVER;
  }
});

const expectationSchema = z
  .strictObject({
    contains: oneOrMore.optional().describe("Texts that the output contains"),
    notContains: oneOrMore.optional().describe("Texts that the output does not contain"),
    matches: pattern
      .optional()
      .describe("A regular expression; named groups fill the placeholders of the same name in later calls"),
    exitCode: z.int().optional().describe("The exit code that the output reports"),
  })
  .refine((expectation) => Object.keys(expectation).length > 0, { error: "expects nothing" });

const callSchema = z
  .record(z.string(), z.union([z.record(z.string(), z.unknown()), z.string()]))
  .refine((call) => Object.keys(call).length === 1, { error: "is `tool: arguments`, one tool to a call" })
  .transform((call) => {
    const [[tool, args] = ["", {}]] = Object.entries(call);
    return { tool, args };
  });

const stepSchema = z
  .strictObject({
    expect: z
      .union([expectationSchema, z.array(expectationSchema).min(1)])
      .transform((value) => [value].flat())
      .optional()
      .describe("Checks of the outputs of the previous step's calls, one for each call, in their order"),
    text: z.string().optional().describe("What the model says"),
    calls: z
      .array(callSchema)
      .min(1)
      .optional()
      .describe(
        "Tools to call: an object is the arguments of a function, a string the input of a freeform tool",
      ),
  })
  .refine(({ text, calls }) => text !== undefined || calls !== undefined, {
    error: "has neither text nor calls",
  });

const stepsSchema = z.array(stepSchema).min(1);

interface ParsedScript {
  steps: z.output<typeof stepsSchema>;
  agents?: ParsedScript[] | undefined;
}

const scriptSchema: z.ZodType<ParsedScript> = z.lazy(() =>
  z.strictObject({
    steps: stepsSchema,
    agents: z.array(scriptSchema).optional().describe("What the agents play that this one starts, in order"),
  }),
);

export type Expectation = z.output<typeof expectationSchema>;
export type ScriptedCall = z.output<typeof callSchema>;
/** One step of a script: what is expected of the request, and what the model answers. */
export type ScriptStep = z.output<typeof stepSchema> & {
  /** The line of the step in the file, from 1; `expectLines` are those of its expectations. */
  line: number;
  expectLines: readonly number[];
};

/** The answers of a scripted model: one step for each request. */
export interface Script {
  file: string;
  steps: readonly ScriptStep[];
  /** The scripts of the agents that it starts, in the order in which they are started. Default: none. */
  agents?: readonly Script[] | undefined;
}

/** How a script is read. */
export interface ScriptOptions {
  /** Whether a step without calls may be followed by others, for further turns. Default: false. */
  hasManyTurns?: boolean;
}

/** Error: `config.invalid`, with line and column, if the YAML file is missing or wrong. */
export async function loadScript(file: string, options: ScriptOptions = {}): Promise<Script> {
  return parseScript(await readScript(file), file, options);
}

/** `file` is only used in messages. Error: `config.invalid`, with line and column, for an invalid text. */
export function parseScript(yaml: string, file: string, options: ScriptOptions = {}): Script {
  const lines = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: lines, prettyErrors: false });
  const source: Source = { file, document, lines, above: [] };
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw invalid(source, problem.pos[0], problem.message);
  const parsed = scriptSchema.safeParse(document.toJS());
  if (!parsed.success) throw invalidShape(source, parsed.error);
  return scriptOf(source, parsed.data, options);
}

function scriptOf(source: Source, { steps: parsed, agents }: ParsedScript, options: ScriptOptions): Script {
  const { file, above } = source;
  const steps = parsed.map((step, index) => ({
    ...step,
    line: lineOf(source, ["steps", index]),
    expectLines: (step.expect ?? []).map((_, each) => expectLine(source, index, each)),
  }));
  refuseUnplayable(source, steps, options);
  if (agents === undefined) return { file, steps };
  // The script of an agent may have many turns, because an agent may be sent further messages.
  const within = (index: number) => ({ ...source, above: [...above, "agents", index] });
  return {
    file,
    steps,
    agents: agents.map((agent, index) => scriptOf(within(index), agent, { hasManyTurns: true })),
  };
}

interface Source {
  file: string;
  document: Document;
  lines: LineCounter;
  /** Where the script is within the document. */
  above: Path;
}

type Path = readonly PropertyKey[];

async function readScript(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new BrigError(`cannot read the script ${file}: ${reasonOf(cause)}`, {
      code: "config.invalid",
      cause,
    });
  }
}

/** A turn ends at the first step without calls. */
function refuseUnplayable(
  source: Source,
  steps: readonly ScriptStep[],
  { hasManyTurns = false }: ScriptOptions,
): void {
  const end = steps.findIndex(({ calls }) => calls === undefined);
  const offset = (index: number) => offsetOf(source, [...source.above, "steps", index]);
  if (steps.at(-1)?.calls !== undefined)
    throw invalid(
      source,
      offset(steps.length - 1),
      "the last step must not call a tool: its text ends the run",
    );
  if (!hasManyTurns && end < steps.length - 1)
    throw invalid(
      source,
      offset(end + 1),
      "this step is never reached: the previous one calls no tool, which ends the run",
    );
  for (const [index, { expect = [] }] of steps.entries()) {
    const callsBefore = steps[index - 1]?.calls?.length ?? 0;
    if (expect.length > callsBefore)
      throw invalid(
        source,
        offset(index),
        `expects ${expect.length} output(s), but the previous step makes ${callsBefore} call(s)`,
      );
  }
}

function invalidShape(source: Source, error: z.ZodError): BrigError {
  const issue = deepest(error.issues);
  if (issue.code !== "unrecognized_keys")
    return invalid(source, offsetOf(source, issue.path), `${nameOf(issue.path)}: ${issue.message}`);
  const key = issue.keys[0] ?? "";
  const known = suggest(key, [
    ...stepSchema.keyof().options,
    ...expectationSchema.keyof().options,
    "steps",
    "agents",
  ]);
  const hint = known === null ? "" : ` (did you mean \`${known}\`?)`;
  return invalid(source, keyOffsetOf(source, issue.path, key), `unknown key \`${key}\`${hint}`);
}

/** The most helpful issue of a union is the one from the branch that matched the document furthest. */
function deepest(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue {
  const flat = issues.flatMap((issue) =>
    issue.code === "invalid_union"
      ? issue.errors.flat().map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
      : [issue],
  );
  const [first = issues[0]] = flat.toSorted((a, b) => b.path.length - a.path.length);
  if (first === undefined) throw new TypeError("a failed parse has an issue");
  return first.code === "invalid_union" ? deepest([first]) : first;
}

function nameOf(path: Path): string {
  return path.length === 0
    ? "the script"
    : path.map((part) => (typeof part === "number" ? `${part + 1}` : String(part))).join(" ");
}

function expectLine(source: Source, step: number, index: number): number {
  const isList = isSeq(source.document.getIn([...source.above, "steps", step, "expect"]));
  return lineOf(source, isList ? ["steps", step, "expect", index] : ["steps", step, "expect"]);
}

function lineOf(source: Source, path: Path): number {
  return source.lines.linePos(offsetOf(source, [...source.above, ...path])).line;
}

function offsetOf(source: Source, path: Path): number {
  const node = path.length === 0 ? source.document.contents : source.document.getIn(path, true);
  if (isNode(node) && node.range) return node.range[0];
  return path.length === 0 ? 0 : offsetOf(source, path.slice(0, -1));
}

function keyOffsetOf(source: Source, path: Path, key: string): number {
  const parent = path.length === 0 ? source.document.contents : source.document.getIn(path, true);
  if (!isMap(parent)) return offsetOf(source, path);
  const pair = parent.items.find((item) => isScalar(item.key) && item.key.value === key);
  return isNode(pair?.key) && pair.key.range ? pair.key.range[0] : offsetOf(source, path);
}

function invalid({ file, lines }: Source, offset: number, message: string): BrigError {
  const { line, col } = lines.linePos(offset);
  return new BrigError(`${file}:${line}:${col}: ${message}`, { code: "config.invalid" });
}

function reasonOf(cause: unknown): string {
  if (cause instanceof Error && "code" in cause)
    return cause.code === "ENOENT" ? "no such file" : String(cause.code);
  return String(cause);
}
