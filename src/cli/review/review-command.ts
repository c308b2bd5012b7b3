import { type Command, Option } from "commander";
import type { AgentFlags, CliContext } from "../../command/index.js";
import { addAgentOptions, readInput, write } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { withoutCommands } from "../../lib/workflow-command.js";
import { deliver, finish, runSession } from "../commands/run.js";

/** What is to be reviewed. */
export interface ReviewedChange {
  uncommitted?: boolean;
  base?: string;
  commit?: string;
  title?: string;
}

interface ReviewFlags extends AgentFlags, ReviewedChange {
  json?: boolean;
  annotations?: "github";
  outputLastMessage?: string;
}

const MAX_PROMPT_BYTES = 1024 * 1024;

export function defineReview(command: Command, context: CliContext): void {
  addAgentOptions(command)
    .argument(
      "[prompt]",
      "what to review, or what to look at, in words of yours; - reads it from standard input",
    )
    .option("--uncommitted", "review what is not committed: staged, unstaged and untracked (default)")
    .option("--base <branch>", "review what has changed since this branch was left")
    .option("--commit <sha>", "review what a commit has changed")
    .option("--title <title>", "with --commit: the title of the commit")
    .option("--json", "print the findings as one JSON object, as Codex's models give them")
    .addOption(
      new Option("--annotations <service>", "also print the findings as annotations of a job").choices([
        "github",
      ]),
    )
    .option("-o, --output-last-message <file>", "also write what is printed to this file")
    .action(async (prompt: string | undefined, flags: ReviewFlags) => await review(prompt, flags, context));
}

export async function review(
  argument: string | undefined,
  flags: ReviewFlags,
  context: CliContext,
): Promise<void> {
  const { readReview, reviewAnnotations, reviewJsonSchema, reviewText } = await import("./findings.js");
  const words = await ownWords(argument, context);
  const prompt = `${GUIDELINES}\n\n${taskOf(flags, words)}`;
  // Whatever the configuration says, a review changes nothing unless its own command line allows it.
  const mode = flags.policy === undefined ? { sandbox: flags.sandbox ?? "read-only" } : {};
  const runFlags = { ...flags, ...mode, json: false };
  const { result, session, output } = await runSession(undefined, runFlags, {
    context,
    given: { prompt, outputSchema: reviewJsonSchema() },
  });
  const message = await finish(result, { flags: runFlags, context, session });
  if (message === null) return;
  const found = readReview(message);
  if (found === null && (flags.json === true || flags.annotations !== undefined))
    throw new BrigError("the model's last message is not a review in the form that it was asked for", {
      code: "model.failed",
      hint: "run it again, or without --json and --annotations to read what the model says",
    });
  const { GITHUB_ACTIONS, GITHUB_WORKSPACE } = context.environment.variables;
  if (flags.json === true) {
    await deliver(JSON.stringify(found), { output, context });
  } else {
    const text = found === null ? message : reviewText(found);
    const isInJob = flags.annotations !== undefined || GITHUB_ACTIONS === "true";
    await deliver(isInJob ? withoutCommands(text) : text, { output, context });
  }
  if (found === null || flags.annotations === undefined) return;
  const lines = reviewAnnotations(found, GITHUB_WORKSPACE ?? context.cwd);
  const to = flags.json === true ? context.stderr : context.stdout;
  for (const line of lines) await write(to, `${neutralise(line)}\n`);
}

/** Null if there are none. */
async function ownWords(argument: string | undefined, { stdin, signal }: CliContext): Promise<string | null> {
  if (argument !== "-") return argument ?? null;
  const tooLong = () => invalidUsage(`standard input is longer than ${MAX_PROMPT_BYTES} bytes`, "say less");
  return (await readInput(stdin, { signal, maxBytes: MAX_PROMPT_BYTES, tooLong })).toString();
}

/** Error: `usage.invalid` for several kinds of changes, and for what is no name of a commit. */
function taskOf({ uncommitted, base, commit, title }: ReviewFlags, words: string | null): string {
  const chosen = [uncommitted === true, base !== undefined, commit !== undefined].filter(Boolean).length;
  if (chosen > 1)
    throw invalidUsage("--uncommitted, --base and --commit exclude each other", "give one of them");
  if (title !== undefined && commit === undefined)
    throw invalidUsage("--title is for the commit of --commit", "leave it out, or add --commit SHA");
  for (const name of [base, commit]) requireRevision(name);
  const own = words === null || words.trim() === "" ? null : words.trim();
  if (chosen === 0 && own !== null) return own;
  const more = own === null ? "" : `\n\nLook at this in particular:\n\n${own}`;
  if (base !== undefined)
    return `Review what has changed since ${base} was left. Show it with: git diff "$(git merge-base HEAD '${base}')"${more}`;
  if (commit !== undefined)
    return `Review what the commit ${commit}${title === undefined ? "" : ` (${title})`} has changed. Show it with: git show '${commit}'${more}`;
  return `Review what is not committed yet: staged, unstaged and untracked files. Begin with: git status --short${more}`;
}

/** What a model may put into a command line as it is. */
function requireRevision(name: string | undefined): void {
  if (name === undefined || (/^[A-Za-z0-9_./@^~{}+-]{1,250}$/.test(name) && !name.startsWith("-"))) return;
  throw invalidUsage(
    `${JSON.stringify(name)} is not the name of a branch or commit`,
    "give a name such as main or origin/main, or the hash of a commit",
  );
}

const GUIDELINES = `Review a change that somebody else proposes. You cannot change files, and need not: read the change and the code around it, and report what its author would want to fix before it is merged.

Report a finding only if all of this holds:
- The change introduces it. What was wrong before is not part of this review.
- It matters: wrong results, crashes, lost data, holes in security, needless slowness, or code that the next person will misread.
- You can name the input or the situation in which it shows. If it depends on other code, you have read that code.
- It is one thing, and there is something definite to do about it.
- It asks for no more care than the rest of this code base shows. Style counts only where it hides the meaning.

Report everything that qualifies, not only the first finding, and nothing if nothing does. For each:
- title: what to do, in at most 80 characters, with the priority in front: [P0] blocks a release whatever the input, [P1] is urgent, [P2] should be fixed, [P3] would be nice. priority is the same number.
- body: one short, factual paragraph, without praise or blame, with code of at most three lines.
- code_location: the absolute path, and the shortest range of lines that shows it, which overlaps the change.
- confidence_score: how sure you are, from 0 to 1.

Then judge the change as a whole: overall_correctness is "patch is correct" if nothing existing breaks and there is no finding that blocks it, else "patch is incorrect"; overall_explanation says why in one to three sentences. Answer with the JSON object alone.`;
