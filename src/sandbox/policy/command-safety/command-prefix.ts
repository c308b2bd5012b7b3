import { isSafeCommand, launchers, looksDangerous } from "./command-risk.js";
import { type CommandWords, commandsOf, programName } from "./shell-script.js";

/** The first words of a command. A person may approve all commands that begin with them. */
export type CommandPrefix = readonly string[];

/** Programs that run what their arguments say: a prefix with options only would allow everything. */
const interpreters: ReadonlySet<string> = new Set(
  (
    "awk bun bunx deno dash docker fish gawk git irb java julia ksh lua luajit make mawk node nodejs npm npx " +
    "osascript perl php pip pip3 pipx pnpm podman powershell powershell.exe pwsh py pypy pypy3 python python2 python3 " +
    "pythonw pyw Rscript ruby sh bash zsh tclsh ts-node tsx uv uvx wscript yarn"
  ).split(" "),
);

/** Programs that start another one. */
const startingPrograms: ReadonlySet<string> = new Set([
  ...launchers,
  ..."cmd cmd.exe eval script ssh su".split(" "),
]);

/**
 * Whether a prefix may be approved: not an empty one, and none that would approve everything, such as
 * `python3`, `bash -lc`, `git` or anything after `sudo`.
 */
export function isAllowedPrefix(prefix: CommandPrefix): boolean {
  const [path = "", ...rest] = prefix;
  const name = programName(path);
  if (name === "" || startingPrograms.has(name)) return false;
  // `python3.11` counts as `python`.
  if (!interpreters.has(name) && !interpreters.has(name.replace(/-?\d[\d.]*$/, ""))) return true;
  // `python3 -m pytest` is as specific as `npm test`.
  const named = rest[0] === "-m" ? rest[1] : rest[0];
  return named !== undefined && !named.startsWith("-");
}

/**
 * Whether every command of the argument list begins with one of the prefixes or, in the sandbox, is known to
 * be safe. False for anything that looks dangerous.
 */
export function isCovered(
  argv: readonly string[],
  prefixes: readonly CommandPrefix[],
  place: "sandbox" | "escalated",
): boolean {
  if (looksDangerous(argv)) return false;
  const isFree = (words: CommandWords) => place === "sandbox" && isSafeCommand(words);
  return (
    commandsOf(argv)?.every(
      (words) => isFree(words) || prefixes.some((prefix) => beginsWith(words, prefix)),
    ) ?? false
  );
}

/**
 * The prefix to offer for a command: the model's if it may be approved and covers the command, else one for a
 * single command. Null if there is none.
 */
export function prefixToOffer(
  argv: readonly string[],
  { proposed, place }: { proposed: CommandPrefix | null; place: "sandbox" | "escalated" },
): CommandPrefix | null {
  const isFit = (prefix: CommandPrefix) => isAllowedPrefix(prefix) && isCovered(argv, [prefix], place);
  if (proposed !== null) return isFit(proposed) ? proposed : null;
  const commands = commandsOf(argv);
  const [words] = commands ?? [];
  if (words === undefined || commands?.length !== 1) return null;
  const prefix = memorablePrefix(words);
  return isFit(prefix) ? prefix : null;
}

/** A single command without the shell around it, so that both spellings are equal. */
export function canonicalCommand(argv: readonly string[]): readonly string[] {
  const commands = commandsOf(argv);
  const [words] = commands ?? [];
  return words !== undefined && commands?.length === 1 ? words : argv;
}

function beginsWith(words: CommandWords, prefix: CommandPrefix): boolean {
  return prefix.length > 0 && prefix.every((word, at) => words[at] === word);
}

/** Subcommands that do the same kind of thing with any arguments. */
const taskWords: Readonly<Record<string, string>> = {
  "apt apt-get": "install update upgrade",
  bundle: "install update",
  bun: "install test",
  cargo: "add bench build check clippy doc fetch fmt test update",
  composer: "install require update",
  deno: "check fmt lint test",
  dotnet: "build restore test",
  git: "add branch checkout commit diff log merge mv restore show stash status switch tag",
  go: "build fmt get mod test vet",
  "gradle gradlew": "assemble build check test",
  "mvn mvnw": "compile install package test verify",
  "npm pnpm yarn": "add audit ci i install t test update",
  "pip pip3": "install",
  poetry: "add build install update",
  uv: "add lock sync",
};

/** Subcommands that are followed by the name of a task of the project. */
const namedTasks: Readonly<Record<string, string>> = {
  "bun deno npm pnpm yarn": "run task",
};

const pythonModules = new Set("black compileall flake8 isort mypy pylint pytest ruff unittest".split(" "));

const oneTaskPrograms = new Set(
  (
    "black c++ cc clang clang++ clippy-driver ctest eslint flake8 g++ gcc gofmt isort jest mocha mypy ninja nox prettier pylint " +
    "pytest rubocop ruff rustc rustfmt tox tsc vitest"
  ).split(" "),
);

/**
 * The program and its subcommand, as in `git commit` or `npm run build`, or only a program with a single
 * purpose. For all others, it is the whole command: less of `python3 -c`, `git push` or `docker run` would allow
 * anything.
 */
function memorablePrefix(words: CommandWords): CommandWords {
  const [path = "", task = "", name = ""] = words;
  const program = programName(path);
  if (oneTaskPrograms.has(program)) return words.slice(0, 1);
  if (lists(taskWords, program, task)) return words.slice(0, 2);
  // A target of make is a task's name; `NAME=value` is not.
  if (program === "make" && isPlainName(task)) return words.slice(0, 2);
  const isNamed = lists(namedTasks, program, task) && isPlainName(name);
  const isModule = /^python[\d.]*$/.test(program) && task === "-m" && pythonModules.has(name);
  return isNamed || isModule ? words.slice(0, 3) : words;
}

function lists(table: Readonly<Record<string, string>>, program: string, word: string): boolean {
  return Object.entries(table).some(
    ([programs, known]) => programs.split(" ").includes(program) && known.split(" ").includes(word),
  );
}

function isPlainName(word: string): boolean {
  return /^[A-Za-z][\w:-]*$/.test(word);
}
