// Runs the task or the command, and reports what came of it: the outputs of the step, and the summary of the job. What a model or a command says is
// nowhere in a place where the runner would obey it.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const MAX_MESSAGE_CHARS = 256 * 1024;
const MAX_ROWS = 200;

const { GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, GITHUB_WORKSPACE = ".", RUNNER_TEMP = "/tmp" } = process.env;
const given = (name) => process.env[`BRIG_ACTION_${name}`] ?? "";
const programs = process.argv[2] ?? "";
const temporary = mkdtempSync(join(RUNNER_TEMP, "brig-run-"));

try {
  process.exitCode = given("COMMAND") === "" ? await runTask() : await runCommand();
} catch (error) {
  console.log(inLog(`brig: ${error.message}`));
  process.exitCode = 2;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

async function runTask() {
  const message = join(temporary, "message");
  const file = outputFile();
  const key = given("KEY");
  const endpoint = given("ENDPOINT").replace(/\/responses\/?$/, "");
  const codexHome = given("CODEX_HOME");
  const { status, stdout } = await run(join(programs, "brig-codex"), taskWords(message), {
    input: taskOf(),
    env: {
      ...(key !== "" && { OPENAI_API_KEY: key }),
      ...(endpoint !== "" && { OPENAI_BASE_URL: endpoint }),
      ...(codexHome !== "" && { CODEX_HOME: resolve(GITHUB_WORKSPACE, codexHome) }),
    },
  });
  const events = stdout.split("\n").flatMap(asJson);
  const text = existsSync(message) ? readFileSync(message, "utf8") : "";
  if (file !== null) file.write(text);
  report({
    message: text,
    attempts: events.filter(({ type }) => type === "egress.attempted"),
    receipt: events.findLast(({ type }) => type === "session.receipt")?.receipt ?? null,
    errors: events.filter(({ type }) => type === "error").map((event) => event.message),
    status,
  });
  return status;
}

function taskWords(message) {
  const settings = {
    model_reasoning_effort: given("EFFORT"),
    network: given("NETWORK"),
    container_image: given("IMAGE"),
  };
  const chosen = Object.entries(settings).filter(([, value]) => value !== "");
  const model = given("MODEL");
  const schema = schemaFile();
  return [
    ...["exec", "--json", "-o", message, "-C", directory(), "-s", mode()],
    ...chosen.flatMap(([name, value]) => ["-c", `${name}=${JSON.stringify(value)}`]),
    ...(model === "" ? [] : ["-m", model]),
    ...(schema === null ? [] : ["--output-schema", schema]),
    ...wordsOf(given("CODEX_ARGS")),
    "-",
  ];
}

async function runCommand() {
  const file = outputFile();
  if (given("PROMPT") !== "" || given("PROMPT_FILE") !== "")
    throw new Error("command is given, and prompt or prompt-file too; give one of them");
  const key = given("KEY");
  const host = new URL(given("ENDPOINT") || "https://api.openai.com/v1").host;
  const network = given("NETWORK") || (key === "" ? "none" : `allowlist:${host}`);
  const hasSecret = key !== "" && network.startsWith("allowlist:");
  const words = [
    ...["exec", "--json", "-s", mode(), "-C", directory(), "--network", network],
    ...(hasSecret ? ["--secret", `OPENAI_API_KEY=${host}`] : []),
    ...(given("IMAGE") === "" ? [] : ["--container-image", given("IMAGE")]),
    ...["-i", "--", "bash", "-s"],
  ];
  const { status, stdout } = await run(join(programs, "brig"), words, {
    input: given("COMMAND"),
    env: hasSecret ? { OPENAI_API_KEY: key } : {},
    isShown: false,
  });
  const [result = {}] = asJson(stdout);
  if (result.stdout !== undefined) console.log(inLog(result.stdout + result.stderr));
  if (file !== null) file.write(result.stdout ?? "");
  report({
    message: result.stdout ?? "",
    attempts: result.egress ?? [],
    receipt: result.receipt ?? null,
    errors: result.error === undefined ? [] : [result.error.message],
    status,
  });
  return status;
}

/** Null if none is asked for. What ran may have put links in the way of the file, and nothing is written through one. */
function outputFile() {
  if (given("OUTPUT_FILE") === "") return null;
  const path = resolve(GITHUB_WORKSPACE, given("OUTPUT_FILE"));
  const folder = realpathSync(dirname(path));
  return {
    write(text) {
      if (realpathSync(dirname(path)) !== folder)
        throw new Error(`the directory of ${path} has become another one`);
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
      const file = openSync(path, flags, 0o644);
      writeFileSync(file, text);
      closeSync(file);
    },
  };
}

function directory() {
  return resolve(GITHUB_WORKSPACE, given("DIRECTORY") || ".");
}

function taskOf() {
  const [prompt, file] = [given("PROMPT"), given("PROMPT_FILE")];
  if (prompt !== "" && file !== "")
    throw new Error("prompt and prompt-file are both given; give one of them");
  return prompt === "" ? readFileSync(resolve(GITHUB_WORKSPACE, file), "utf8") : prompt;
}

/** Wherever commands are restricted by Codex's action, they are here. */
function mode() {
  const [sandbox, profile] = [given("SANDBOX"), given("PERMISSION_PROFILE")];
  const strategies = ["", "drop-sudo", "unprivileged-user", "unsafe", "read-only"];
  if (!strategies.includes(given("SAFETY_STRATEGY")))
    throw new Error(`safety-strategy is none of ${strategies.slice(1).join(", ")}`);
  if (sandbox !== "" && profile !== "")
    throw new Error("sandbox and permission-profile are both given; give one of them");
  const profiles = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
  };
  if (profile !== "" && !Object.hasOwn(profiles, profile))
    throw new Error(
      `permission-profile is none of ${Object.keys(profiles).join(", ")}; give sandbox instead`,
    );
  const chosen = profile === "" ? sandbox || "workspace-write" : profiles[profile];
  return given("SAFETY_STRATEGY") === "read-only" ? "read-only" : chosen;
}

function schemaFile() {
  const [schema, file] = [given("OUTPUT_SCHEMA"), given("OUTPUT_SCHEMA_FILE")];
  if (schema !== "" && file !== "")
    throw new Error("output-schema and output-schema-file are both given; give one of them");
  if (schema === "") return file === "" ? null : resolve(GITHUB_WORKSPACE, file);
  const written = join(temporary, "schema.json");
  writeFileSync(written, schema);
  return written;
}

/** A JSON array of strings, or words with quotes as in a shell, in which nothing is replaced. */
function wordsOf(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) {
    const [words] = asJson(trimmed);
    if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
    throw new Error("codex-args begins like a JSON array, and is not one of strings");
  }
  const words = [];
  const word = /\s*((?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+)\s*/gsy;
  while (word.lastIndex < trimmed.length) {
    const found = word.exec(trimmed);
    if (found === null) throw new Error("codex-args has a quote that does not end");
    words.push(
      found[1].replace(/'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs, (_, single, double, one) => {
        return single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? one;
      }),
    );
  }
  return words;
}

/** Runs one of brig's programs. With `isShown`, its output is in the log as it comes, but no commands that are in it. */
function run(program, words, { input, env, isShown = true }) {
  const variables = Object.entries(process.env).filter(
    ([name]) => !/^(?:BRIG_ACTION_|GITHUB_TOKEN$|NODE_OPTIONS$)/.test(name),
  );
  const child = spawn(program, words, {
    env: { ...Object.fromEntries(variables), ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const stop = `stop-${randomBytes(16).toString("hex")}`;
  console.log(`::stop-commands::${stop}`);
  const pieces = [];
  let size = 0;
  child.stdout.on("data", (piece) => {
    size += piece.length;
    if (size <= MAX_OUTPUT_BYTES) pieces.push(piece);
    if (isShown) process.stdout.write(piece);
  });
  child.stderr.on("data", (piece) => process.stdout.write(piece));
  return new Promise((ended, failed) => {
    child.once("error", failed);
    child.once("close", (code) => {
      console.log(`\n::${stop}::`);
      ended({ status: code ?? 1, stdout: Buffer.concat(pieces).toString() });
    });
  });
}

function report({ message, attempts, receipt, errors, status }) {
  output("final-message", message.slice(0, MAX_MESSAGE_CHARS));
  output("receipt", JSON.stringify(receipt));
  if (GITHUB_STEP_SUMMARY === undefined) return;
  const findings = receipt?.findings ?? [];
  appendFileSync(
    GITHUB_STEP_SUMMARY,
    [
      `## brig: ${status === 0 ? "done" : `ended with exit status ${status}`}`,
      ...errors.map((error) => `\n${markdown(error)}`),
      ...(message === "" ? [] : ["\n### Final message\n", fenced(message.slice(0, MAX_MESSAGE_CHARS))]),
      "\n### Network\n",
      ...(attempts.length === 0
        ? ["No program tried to reach a host, or there was no list of allowed hosts."]
        : table(["Host", "Program", "Outcome", "Times"], attempts.map(attemptRow))),
      "\n### Receipt\n",
      ...(receipt === null ? ["There is none: no sandbox was opened."] : []),
      ...(receipt === null
        ? []
        : findings.length === 0
          ? ["Nothing was left that a program outside would run."]
          : table(
              ["File", "Obeyed by"],
              findings.map((one) => [one.path, one.obeyedBy]),
            )),
      "\n",
    ].join("\n"),
  );
}

function attemptRow({ host, port, program, outcome, reason, count }) {
  return [`${host}:${port}`, program ?? "", reason === null ? outcome : `${outcome}: ${reason}`, count];
}

function output(name, value) {
  if (GITHUB_OUTPUT === undefined) return;
  const end = `end-${randomBytes(16).toString("hex")}`;
  appendFileSync(GITHUB_OUTPUT, `${name}<<${end}\n${value}\n${end}\n`);
}

function table(heads, rows) {
  const line = (cells) => `| ${cells.map(markdown).join(" | ")} |`;
  const left = rows.length - MAX_ROWS;
  return [
    line(heads),
    `|${heads.map(() => " --- |").join("")}`,
    ...rows.slice(0, MAX_ROWS).map(line),
    ...(left > 0 ? [`\nAnd ${left} more.`] : []),
  ];
}

/** Nothing in the text means something to Markdown or HTML, and a cell stays one. */
function markdown(text) {
  return `${text}`
    .slice(0, 500)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/[!-,.:-@[-`{-~]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A block of code that the text cannot end. */
function fenced(text) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

/** A text for the log in which the runner finds no command. */
function inLog(text) {
  return text.replace(/^(\s*)::/gm, "$1: :").replaceAll("##[", "## [");
}

function asJson(text) {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}
