import { cp, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { parse } from "yaml";

interface Step {
  id?: string;
  name: string;
  if?: string;
  uses?: string;
  with?: Record<string, string>;
  shell?: string;
  env?: Record<string, string>;
  run?: string;
}

interface Action {
  inputs: Record<string, { default?: string }>;
  outputs: Record<string, { value: string }>;
  runs: { steps: Step[] };
}

export interface Job {
  /** Where the action is. */
  action: string;
  /** A new directory for the job's files. */
  directory: string;
  workspace: string;
  /** What lasts between jobs of a repository. */
  cache: string;
  inputs: Record<string, string>;
  /** The variables of the job. */
  env: Record<string, string>;
}

export interface EndedJob {
  /** The steps that ran, in order. */
  ran: string[];
  failed: string | null;
  log: string;
  outputs: Record<string, string>;
  summary: string;
  /** What is on the `PATH` of the steps that follow. */
  paths: string[];
}

type Values = Record<string, unknown>;

/** Runs the steps of a composite action as GitHub's runner does, as far as this action needs it. */
export async function runAction(job: Job): Promise<EndedJob> {
  const action: Action = parse(await readFile(join(job.action, "action.yml"), "utf8"));
  for (const name of Object.keys(job.inputs))
    if (!Object.hasOwn(action.inputs, name)) throw new Error(`the action has no input ${name}`);
  const temporary = join(job.directory, "temp");
  await mkdir(temporary, { recursive: true });
  const summaryFile = join(job.directory, "summary.md");
  const pathFile = join(job.directory, "path");
  await Promise.all([summaryFile, pathFile].map((file) => writeFile(file, "")));
  const steps: Record<string, { outputs: Record<string, string> }> = {};
  const contexts: Values = {
    inputs: Object.fromEntries(
      Object.entries(action.inputs).map(([name, input]) => [
        name,
        job.inputs[name] ?? `${input.default ?? ""}`,
      ]),
    ),
    github: { workspace: job.workspace, token: "token-of-the-job", action_path: job.action },
    runner: { temp: temporary, os: "Linux", arch: "X64" },
    steps,
  };
  const ended: EndedJob = { ran: [], failed: null, log: "", outputs: {}, summary: "", paths: [] };
  const atEnd: (() => Promise<void>)[] = [];
  for (const [at, step] of action.runs.steps.entries()) {
    if (step.if !== undefined && !evaluate(step.if.replace(/^\$\{\{|\}\}$/g, ""), contexts)) continue;
    ended.ran.push(step.name);
    if (step.uses !== undefined) {
      const given = filledIn(step.with ?? {}, contexts);
      if (step.uses.startsWith("actions/cache@")) atEnd.push(await restore(given, job.cache));
      else if (!step.uses.startsWith("actions/setup-node@")) throw new Error(`nobody knows ${step.uses}`);
      continue;
    }
    // A runner replaces expressions in the text of the script too, which is how inputs become commands.
    if (step.run?.includes("${{") === true) throw new Error(`the script of ${step.name} has an expression`);
    const output = join(job.directory, `output-${at}`);
    await writeFile(output, "");
    const script = join(job.directory, `script-${at}.sh`);
    await writeFile(script, step.run ?? "");
    const { all, exitCode } = await execa("bash", ["--noprofile", "--norc", "-eo", "pipefail", script], {
      ...{ cwd: job.workspace, all: true, reject: false, stdin: "ignore" },
      env: {
        ...{
          CI: "true",
          GITHUB_ACTIONS: "true",
          GITHUB_WORKSPACE: job.workspace,
          GITHUB_ACTION_PATH: job.action,
        },
        ...{
          GITHUB_OUTPUT: output,
          GITHUB_PATH: pathFile,
          GITHUB_STEP_SUMMARY: summaryFile,
          RUNNER_TEMP: temporary,
          ...job.env,
        },
        ...filledIn(step.env ?? {}, contexts),
      },
    });
    ended.log += `${all}\n`;
    if (step.id !== undefined) steps[step.id] = { outputs: readOutputs(await readFile(output, "utf8")) };
    if (exitCode !== 0) {
      ended.failed = step.name;
      break;
    }
  }
  if (ended.failed === null) for (const save of atEnd) await save();
  ended.outputs = filledIn(
    Object.fromEntries(Object.entries(action.outputs).map(([name, { value }]) => [name, value])),
    contexts,
  );
  ended.summary = await readFile(summaryFile, "utf8");
  ended.paths = (await readFile(pathFile, "utf8")).split("\n").filter((path) => path !== "");
  return ended;
}

/** Puts what was kept under the key in its place. Returns what is done at the end of a job, which keeps it. */
async function restore({ path = "", key = "" }: Record<string, string>, cache: string) {
  const kept = join(cache, key);
  const exists = async (file: string) => (await stat(file).catch(() => null)) !== null;
  if (await exists(kept)) {
    await cp(kept, path);
    return async () => undefined;
  }
  return async () => {
    if (await exists(path)) await cp(path, kept);
  };
}

function readOutputs(text: string): Record<string, string> {
  const outputs: Record<string, string> = {};
  for (let rest = text; rest !== ""; ) {
    const [, name = "", end] = /^([^=<\n]+)(?:<<(.*)|=.*)\n/.exec(rest) ?? [];
    if (name === "") throw new Error(`this is no output: ${rest.slice(0, 100)}`);
    const from = rest.indexOf("\n") + 1;
    if (end === undefined) {
      outputs[name] = rest.slice(name.length + 1, from - 1);
      rest = rest.slice(from);
    } else {
      const to = rest.indexOf(`\n${end}\n`, from - 1);
      if (to === -1) throw new Error(`the output ${name} does not end`);
      outputs[name] = rest.slice(from, to);
      rest = rest.slice(to + end.length + 2);
    }
  }
  return outputs;
}

function filledIn(texts: Record<string, string>, contexts: Values): Record<string, string> {
  const fill = (text: string) =>
    `${text}`.replace(/\$\{\{(.*?)\}\}/gs, (_, expression) => `${evaluate(expression, contexts) ?? ""}`);
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
}

/** Names, texts, `==`, `!=`, `&&` and `||`. */
function evaluate(expression: string, contexts: Values): unknown {
  const either = expression.split("||");
  if (either.length > 1)
    return (
      either.map((part) => evaluate(part, contexts)).find(Boolean) ?? evaluate(either.at(-1) ?? "", contexts)
    );
  const both = expression.split("&&");
  if (both.length > 1) return both.every((part) => evaluate(part, contexts));
  const [, left, operator, right] = /^(.*?)(==|!=)(.*)$/s.exec(expression) ?? [];
  if (left !== undefined && right !== undefined) {
    const isSame = evaluate(left, contexts) === evaluate(right, contexts);
    return operator === "==" ? isSame : !isSame;
  }
  const term = expression.trim();
  const text = /^'([^']*)'$/.exec(term)?.[1];
  if (text !== undefined) return text;
  if (!/^[a-z_]+(?:\.[\w-]+|\['[\w-]+'\])*$/.test(term)) throw new Error(`what does ${term} mean?`);
  const names = [...term.matchAll(/[\w-]+/g)].map(([name]) => name);
  return names.reduce<unknown>((value, name) => (value as Values | undefined)?.[name] ?? "", contexts);
}
