import { type BrigError, invalidUsage } from "../../errors.js";
import { type Environment, withColours } from "../../lib/env.js";
import type { ResumeFlags } from "../commands/resume.js";
import type { ReviewedChange } from "../review/review-prompt.js";

export interface CodexFlags extends ReviewedChange {
  json?: boolean;
  config?: string[];
  model?: string;
  oss?: boolean;
  localProvider?: string;
  profile?: string;
  sandbox?: string;
  fullAuto?: boolean;
  yolo?: boolean;
  cd?: string;
  addDir?: string[];
  image?: string[];
  outputSchema?: string;
  outputLastMessage?: string;
  ephemeral?: boolean;
  ignoreUserConfig?: boolean;
  color?: "always" | "never" | "auto";
  last?: boolean;
  all?: boolean;
  search?: boolean;
  enable?: string[];
  disable?: string[];
  approveForMe?: boolean;
  worktree?: boolean;
  cyberAccessProgram?: string;
}

/** The models that Codex uses for `--oss` without `--model`. */
const localModels: Readonly<Record<string, string>> = {
  ollama: "gpt-oss:20b",
  lmstudio: "openai/gpt-oss-20b",
};

/** Translates to the flags of `brig run` and `brig resume`, and applies `--color` to the environment. */
export function readCodexFlags(
  flags: CodexFlags,
  environment: Environment,
): { run: ResumeFlags; environment: Environment } {
  const { json, profile, cd, addDir, image, outputSchema, outputLastMessage, ephemeral, last, all } = flags;
  const local = localProvider(flags);
  return {
    run: {
      json,
      profile,
      cd,
      addDir,
      image,
      outputSchema,
      outputLastMessage,
      ephemeral,
      last,
      all,
      sandbox: sandboxMode(flags),
      askForApproval: "never",
      model: flags.model ?? (local === null ? undefined : localModels[local]),
      config: configOverrides(flags, local),
      // Only brig replay needs the record of the final files, and it takes time.
      treeRecord: false,
    },
    environment:
      flags.color === "never" || flags.color === "always"
        ? withColours(environment, flags.color)
        : environment,
  };
}

/** Throws for flags and subcommands that brig has no counterpart of. */
export function refuseUnsupported(flags: CodexFlags, [word]: readonly string[]): void {
  if (word === "review" && flags.json === true)
    throw refused(
      "exec review --json",
      "use brig review --json, which prints the findings as one JSON object",
    );
  const { uncommitted, base, commit, title } = flags;
  if (word !== "review" && (uncommitted ?? base ?? commit ?? title) !== undefined)
    throw invalidUsage(
      "--uncommitted, --base, --commit and --title are for exec review",
      "put the word review before them",
    );
  if (word === "fork" || word === "help")
    throw refused(
      `exec ${word}`,
      word === "fork"
        ? "use brig resume --fork, which continues in a copy of a session"
        : `describe the task in the prompt; a prompt of the single word ${word} is not possible`,
    );
  if (flags.approveForMe)
    throw refused("--approve-for-me", "leave it out: brig only ever asks a person for approval");
  if (flags.worktree) throw refused("--worktree", "give the directory of a worktree with --cd");
  if (flags.cyberAccessProgram !== undefined) throw refused("--cyber-access-program", "leave it out");
}

function sandboxMode({ sandbox, fullAuto, yolo }: CodexFlags): string | undefined {
  if (yolo !== true) return sandbox ?? (fullAuto === true ? "workspace-write" : undefined);
  if (sandbox === undefined && fullAuto !== true) return "danger-full-access";
  throw invalidUsage(
    "--dangerously-bypass-approvals-and-sandbox cannot be combined with --sandbox or --full-auto",
    "leave out one of them",
  );
}

function localProvider({ oss, localProvider: named }: CodexFlags): string | null {
  if (oss !== true) return null;
  const provider = named ?? "ollama";
  if (Object.hasOwn(localModels, provider)) return provider;
  throw invalidUsage(
    `there is no local provider ${JSON.stringify(provider)}`,
    `use ${Object.keys(localModels).join(" or ")}`,
  );
}

/** A later override wins over an earlier one, so the explicit `-c` values come last. */
function configOverrides(
  { enable = [], disable = [], search, config = [] }: CodexFlags,
  local: string | null,
): string[] {
  return [
    ...(local === null ? [] : [`model_provider=${JSON.stringify(local)}`]),
    ...(search === true ? ['web_search="live"'] : []),
    ...enable.map((feature) => `features.${featureName(feature)}=true`),
    ...disable.map((feature) => `features.${featureName(feature)}=false`),
    ...config,
  ];
}

function featureName(name: string): string {
  if (/^[\w-]+$/.test(name)) return name;
  throw invalidUsage(
    `${JSON.stringify(name)} is not a valid feature name`,
    "a name has only letters, digits, - and _",
  );
}

function refused(what: string, hint: string): BrigError {
  return invalidUsage(`brig-codex does not support ${what}`, hint);
}
