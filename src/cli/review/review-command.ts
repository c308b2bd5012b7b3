import { type Command, Option } from "commander";
import type { AgentFlags, CliContext } from "../../command/index.js";
import { addAgentOptions, readInput, write } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { withoutCommands } from "../../lib/workflow-command.js";
import { deliver, finish, runSession } from "../commands/run.js";
import { type ReviewedChange, reviewPrompt } from "./review-prompt.js";

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
  const prompt = reviewPrompt(flags, words);
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
  const to = flags.json === true ? context.essentialStderr : context.stdout;
  for (const line of lines) await write(to, `${neutralise(line)}\n`);
}

/** Null if there are none. */
async function ownWords(argument: string | undefined, { stdin, signal }: CliContext): Promise<string | null> {
  if (argument !== "-") return argument ?? null;
  const tooLong = () => invalidUsage(`standard input is longer than ${MAX_PROMPT_BYTES} bytes`, "say less");
  return (await readInput(stdin, { signal, maxBytes: MAX_PROMPT_BYTES, tooLong })).toString();
}
