import { hostname } from "node:os";
import { type Command, InvalidArgumentError } from "commander";
import { findSessionFiles, summariseAll } from "../../agent/index.js";
import type { CliContext, DefineCommand } from "../../command/index.js";
import { write } from "../../command/index.js";
import { readHostProcesses } from "../../lib/owner.js";
import { readLasting } from "../../services/index.js";
import type { CommandEntry } from "../command-entry.js";
import { programOf } from "../program.js";
import { countGlobals } from "../usage/global-options.js";
import { type CompletedWord, completeWords, type KnownWords } from "./complete-words.js";
import { isShell, type Shell, shellScripts } from "./shell-scripts.js";

export function defineCompletion(command: Command, context: CliContext): void {
  command
    .argument("<shell>", `${Object.keys(shellScripts).join(", ")}`, shellArgument)
    .addHelpText("after", HELP)
    .action(async (shell: Shell) => await write(context.stdout, shellScripts[shell]));
}

const HELP = `
Commands, options, modes, sandboxes of brig up, sessions and files are completed.

  bash: in ~/.bashrc               source <(brig completion bash)
  zsh:  in ~/.zshrc after compinit source <(brig completion zsh)
  fish: once                       brig completion fish > ~/.config/fish/completions/brig.fish`;

/** What the scripts of the shells call. It completes these commands. */
export function completeOf(commands: readonly CommandEntry[]): DefineCommand {
  return (command, context) =>
    command
      .argument("<shell>", "the shell that asks", shellArgument)
      .argument("[words...]", "what was typed behind the program's name")
      .action(async (shell: Shell, words: string[]) => {
        const { typed, before } = shell === "bash" ? joinedWords(words) : { typed: words, before: "" };
        const program = await programOf(typed.slice(countGlobals(typed)).slice(0, 1), { context, commands });
        const { words: found, others } = await completeWords(program, typed, knownWords(context));
        const lines = found.map(({ word, about }) => ({ word: withoutStart(word, before), about }));
        const told = lines.filter(({ word }) => word !== "").map(({ word, about }) => `${word}\t${about}\n`);
        await write(context.stdout, `${others}\n${told.join("")}`);
      });
}

function shellArgument(text: string): Shell {
  if (isShell(text)) return text;
  throw new InvalidArgumentError(`It must be one of ${Object.keys(shellScripts).join(", ")}.`);
}

/** Bash cuts words at = and : as well, and replaces only the last piece: `before` is what comes before that in the last word. */
function joinedWords(words: readonly string[]): { typed: string[]; before: string } {
  const typed: string[] = [];
  let before = "";
  let isOpen = false;
  for (const word of words) {
    const isBreak = word === "=" || word === ":";
    const isPiece = typed.length > 0 && (isBreak || isOpen);
    before = isPiece ? `${typed.pop()}${isBreak ? word : ""}` : "";
    typed.push(isPiece && !isBreak ? `${before}${word}` : before || word);
    isOpen = isBreak;
  }
  return { typed, before };
}

function withoutStart(word: string, start: string): string {
  return word.startsWith(start) ? word.slice(start.length) : word;
}

/** As many as a person looks through. */
const SESSIONS = 30;

function knownWords({ environment: { brigHome } }: CliContext): KnownWords {
  return {
    sandboxes: () =>
      readLasting(brigHome).map(({ name, state, about }) => ({
        word: name,
        about: `${state}, ${about.mode}`,
      })),
    async sessions(): Promise<CompletedWord[]> {
      const latest = (await findSessionFiles(brigHome)).slice(0, SESSIONS);
      const summaries = await summariseAll(latest, await readHostProcesses(hostname()));
      return summaries.map(({ id, prompt }) => ({ word: id, about: (prompt ?? "").slice(0, 60) }));
    },
  };
}
