import { type Command, Option } from "commander";
import type { CallerDefaults } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { collect } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { resume, resumeTarget } from "../commands/resume.js";
import { type RunFlags, runCommand } from "../commands/run.js";
import { type CodexFlags, readCodexFlags, refuseUnsupported } from "./codex-flags.js";

/** `codex exec [OPTIONS] [PROMPT]`, `codex exec [OPTIONS] review [OPTIONS] [PROMPT]` and `codex exec [OPTIONS] resume [OPTIONS] [SESSION_ID] [PROMPT]`. */
export function defineCodexExec(command: Command, context: CliContext): void {
  addCodexOptions(command)
    .argument("[words...]", "the prompt; or the word resume, then a session's id or --last, then the prompt")
    .action(async (words: string[], flags: CodexFlags) => {
      refuseUnsupported(flags, words);
      const { run, environment } = readCodexFlags(flags, context.environment);
      const caller = callerDefaults(flags, context);
      const own = { ...context, environment };
      if (words[0] === "review") {
        const { review } = await import("../review/review-command.js");
        const { uncommitted, base, commit, title } = flags;
        const asked = { uncommitted, base, commit, title };
        return await review(onlyPrompt(words.slice(1)), { ...run, ...asked, caller }, own);
      }
      if (words[0] === "resume") return await resumeSession(words.slice(1), { ...run, caller }, own);
      await runCommand(onlyPrompt(words), { ...run, caller }, { context: own });
    });
}

function addCodexOptions(command: Command): Command {
  return command
    .option("--experimental-json, --json", "print events to stdout, one JSON object per line")
    .option(
      "-c, --config <key=value>",
      "set a key of config.toml, the value in TOML; may be repeated",
      collect,
    )
    .option("-m, --model <model>", "the model to use")
    .option("--oss", "use a model that runs on this machine")
    .option("--local-provider <provider>", "with --oss: ollama (default) or lmstudio")
    .option("-p, --profile <name>", "use this profile of the configuration")
    .option("-s, --sandbox <mode>", "the sandbox mode (default: from the configuration, else read-only)")
    .option("-a, --ask-for-approval <policy>", "accepted and ignored: the policy is always never")
    .option("--full-auto", "the same as --sandbox workspace-write")
    .option("--dangerously-bypass-approvals-and-sandbox, --yolo", "full access, but still in a container")
    .option("-C, --cd <dir>", "the workspace (default: the current directory)")
    .option("--add-dir <dir>", "another writable directory; may be repeated", collect)
    .option("-i, --image <file...>", "attach images to the prompt")
    .option("--output-schema <file>", "a JSON Schema for the final message")
    .option("-o, --output-last-message <file>", "also write the final message to this file")
    .option("--ephemeral", "do not save the session")
    .option("--ignore-user-config", "do not read config.toml of $BRIG_HOME or $CODEX_HOME")
    .addOption(new Option("--color <when>", "when to use colours").choices(["always", "never", "auto"]))
    .option("--last", "with resume: the most recent session of this directory")
    .option("--all", "with resume --last: the most recent session of any directory")
    .option("--uncommitted", "with review: what is not committed (default)")
    .option("--base <branch>", "with review: what has changed since this branch was left")
    .option("--commit <sha>", "with review: what a commit has changed")
    .option("--title <title>", "with review --commit: the title of the commit")
    .option("--search", 'the same as -c web_search="live"')
    .option("--enable <feature>", "the same as -c features.FEATURE=true", collect)
    .option("--disable <feature>", "the same as -c features.FEATURE=false", collect)
    .option("--skip-git-repo-check", "accepted and ignored: brig never requires a repository")
    .option("--thread-source <source>", "accepted and ignored")
    .option("--ignore-rules", "accepted and ignored: brig reads no rules files")
    .option("--strict-config", "accepted and ignored: wrong values are always errors")
    .option("--dangerously-bypass-hook-trust", "accepted and ignored: brig runs no hooks")
    .addOption(new Option("--approve-for-me").hideHelp())
    .addOption(new Option("--worktree").hideHelp())
    .addOption(new Option("--cyber-access-program <program>").hideHelp());
}

async function resumeSession(words: readonly string[], flags: RunFlags, context: CliContext): Promise<void> {
  const [session, ...rest] = words;
  await resume(resumeTarget({ session, prompt: onlyPrompt(rest) }, flags), flags, context);
}

/** Refuses a prompt of several arguments: it lacks its quotes, and joining the words would be a guess. */
function onlyPrompt(words: readonly string[]): string | undefined {
  const [prompt, unexpected] = words;
  if (unexpected === undefined) return prompt;
  throw invalidUsage(
    `unexpected argument ${JSON.stringify(unexpected)}`,
    "put the prompt in quotes, so that it is one argument",
  );
}

function callerDefaults({ ignoreUserConfig }: CodexFlags, { environment }: CliContext): CallerDefaults {
  return {
    usualMode: "read-only",
    originator: environment.variables.CODEX_INTERNAL_ORIGINATOR_OVERRIDE,
    ignoresUserFile: ignoreUserConfig === true,
    toleratesAddDirs: true,
  };
}
