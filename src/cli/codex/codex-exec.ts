import { type Command, Option } from "commander";
import { BrigError } from "../../errors.js";
import { askedFor, resume } from "../commands/resume.js";
import { type RunFlags, runCommand } from "../commands/run.js";
import type { CliContext } from "../context.js";
import type { CallerDefaults } from "../setup/agent-flags.js";
import { collect } from "../setup/option-values.js";
import { type CodexFlags, readCodexFlags, refuseUnsupported } from "./codex-flags.js";

/** `codex exec [OPTIONS] [PROMPT]` and `codex exec [OPTIONS] resume [OPTIONS] [SESSION_ID] [PROMPT]`. */
export function defineCodexExec(command: Command, context: CliContext): void {
  addCodexOptions(command)
    .argument("[words...]", "the prompt; or resume, a session's id or --last, and the prompt")
    .action(async (words: string[], flags: CodexFlags) => {
      refuseUnsupported(flags, words);
      const { run, environment } = readCodexFlags(flags, context.environment);
      const caller = callerDefaults(flags, context);
      const own = { ...context, environment };
      if (words[0] === "resume") return await resumeSession(words.slice(1), { ...run, caller }, own);
      await runCommand(onlyPrompt(words), { ...run, caller }, { context: own });
    });
}

function addCodexOptions(command: Command): Command {
  const repeated = (flags: string, description: string) => new Option(flags, description).argParser(collect);
  return command
    .option("--experimental-json, --json", "print events to stdout as JSON, one to a line")
    .addOption(
      repeated("-c, --config <key=value>", "a key of config.toml, the value as TOML; may be repeated"),
    )
    .option("-m, --model <model>", "the model to ask")
    .option("--oss", "ask a model on this machine")
    .option("--local-provider <provider>", "with --oss: ollama (default) or lmstudio")
    .option("-p, --profile <name>", "a profile of the configuration")
    .option("-s, --sandbox <mode>", "what the sandbox may do (default: the configuration's, else read-only)")
    .option("-a, --ask-for-approval <policy>", "accepted, and always never: nobody is there to ask")
    .option("--full-auto", "the same as --sandbox workspace-write")
    .option("--dangerously-bypass-approvals-and-sandbox, --yolo", "full access, inside the container")
    .option("-C, --cd <dir>", "the workspace (default: the current directory)")
    .addOption(repeated("--add-dir <dir>", "a further writable directory; may be repeated"))
    .option("-i, --image <file...>", "pictures for the model")
    .option("--output-schema <file>", "a JSON Schema for the final message")
    .option("-o, --output-last-message <file>", "write the final message to a file as well")
    .option("--ephemeral", "keep no record of the session")
    .option("--ignore-user-config", "do not read config.toml of $BRIG_HOME or $CODEX_HOME")
    .addOption(new Option("--color <when>", "always, never, auto").choices(["always", "never", "auto"]))
    .option("--last", "with resume: the session of this directory that was written to last")
    .option("--all", "with resume --last: of any directory")
    .option("--search", 'the same as -c web_search="live"')
    .addOption(repeated("--enable <feature>", "the same as -c features.FEATURE=true"))
    .addOption(repeated("--disable <feature>", "the same as -c features.FEATURE=false"))
    .option("--skip-git-repo-check", "accepted: brig never asks for a repository")
    .option("--thread-source <source>", "accepted, and not recorded")
    .option("--ignore-rules", "accepted: brig reads no rules")
    .option("--strict-config", "accepted: wrong values are always errors")
    .option("--dangerously-bypass-hook-trust", "accepted: brig runs no hooks")
    .addOption(new Option("--approve-for-me").hideHelp())
    .addOption(new Option("--worktree").hideHelp())
    .addOption(new Option("--cyber-access-program <program>").hideHelp());
}

async function resumeSession(words: readonly string[], flags: RunFlags, context: CliContext): Promise<void> {
  const [session, ...rest] = words;
  const asked = askedFor({ session, prompt: onlyPrompt(rest) }, flags);
  await resume(asked, flags, context);
}

/** A prompt in several words was meant to be quoted: what it would become is a guess. */
function onlyPrompt(words: readonly string[]): string | undefined {
  const [prompt, unexpected] = words;
  if (unexpected === undefined) return prompt;
  throw new BrigError(`unexpected argument ${JSON.stringify(unexpected)}`, {
    code: "usage.invalid",
    hint: "a prompt is one argument: put it in quotes",
  });
}

function callerDefaults({ ignoreUserConfig }: CodexFlags, { environment }: CliContext): CallerDefaults {
  return {
    mode: "read-only",
    originator: environment.variables.CODEX_INTERNAL_ORIGINATOR_OVERRIDE,
    ignoresUserConfig: ignoreUserConfig === true,
  };
}
