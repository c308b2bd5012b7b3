import type { CliContext } from "../../command/index.js";
import type { Environment } from "../../lib/env.js";
import { environmentProblem } from "../check-home.js";
import type { CommandEntry } from "../command-entry.js";
import { runProgram } from "../program.js";

const commands: CommandEntry[] = [
  {
    name: "exec",
    summary: "give a model a task; accepts the command line of codex exec and codex exec resume",
    load: async () => (await import("./codex-exec.js")).defineCodexExec,
    printsEvents: true,
  },
];

const description =
  "Accepts the command line of codex exec, for programs that start Codex, and runs the model's tool calls in a container.\n\n" +
  "For everything else, conversations included, use brig.";

/** Runs a command line that was written for `codex`. Resolves to the exit status of a failure, or to null. */
export async function runCodexProgram(argv: string[], context: CliContext): Promise<number | null> {
  const isUsable = environmentProblem(context) === null;
  return await runProgram(oneImageEach(optionsAfterCommand(argv)), {
    context: isUsable ? { ...context, environment: withCodexKey(context.environment) } : context,
    commands,
    program: { name: "brig-codex", description },
  });
}

/**
 * Moves `exec` to the front. As in Codex, its options may come before it (`codex -a never exec PROMPT`), and `e` is `exec`.
 */
export function optionsAfterCommand(argv: readonly string[]): string[] {
  const at = argv.findIndex((word) => word === "exec" || word === "e");
  if (at < 0 || argv.slice(0, at).includes("--")) return [...argv];
  return ["exec", ...argv.slice(0, at), ...argv.slice(at + 1)];
}

/**
 * Gives each image an option of its own. As in Codex, `--image` takes all words up to the next option, and one alone
 * after `resume`. A `-` is no image: it says that the prompt is on standard input.
 */
export function oneImageEach(argv: readonly string[]): string[] {
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
  const read: string[] = [];
  for (let at = 0; at < end; at++) {
    const word = argv[at] ?? "";
    if (word !== "-i" && word !== "--image") {
      read.push(word);
      continue;
    }
    const images = imagesAfter(argv.slice(at + 1, end), { isOne: read.includes("resume") });
    // Without an image, the option is kept as it is, so that its missing argument is reported.
    read.push(...(images.length === 0 ? [word] : images.map((image) => `--image=${image}`)));
    at += images.length;
  }
  return [...read, ...argv.slice(end)];
}

function imagesAfter(words: readonly string[], { isOne }: { isOne: boolean }): readonly string[] {
  const next = words.findIndex((word) => word.startsWith("-"));
  return words.slice(0, next < 0 ? words.length : next).slice(0, isOne ? 1 : undefined);
}

/** As in Codex, `CODEX_API_KEY` takes precedence over `OPENAI_API_KEY`. */
function withCodexKey(environment: Environment): Environment {
  const key = environment.variables.CODEX_API_KEY;
  if (key === undefined) return environment;
  const variables = Object.freeze({ ...environment.variables, OPENAI_API_KEY: key });
  return Object.freeze({ ...environment, variables, openaiApiKey: key });
}
