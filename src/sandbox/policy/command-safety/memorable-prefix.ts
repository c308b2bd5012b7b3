import { type CommandWords, programName } from "./words.js";

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
export function memorablePrefix(words: CommandWords): CommandWords {
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
