// A reporter for vitest. Its lines are the last that a run prints: each failure with its message and the command that runs it alone, and how
// many tests were skipped for which reason. What vitest itself prints of a failure may stand thousands of lines further up.
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";

/** Some messages are a whole file long. */
const messageLines = 15;
const lineWidth = 300;
/** Where more than this fail, they probably fail for the same reason. */
const shownFailures = 40;

export default class ClosingReporter {
  #vitest;
  #configFile;
  /** By the id of the test, the group or the file. */
  #failures = new Map();
  /** The skipped tests, by id. */
  #skipped = new Map();
  #outside = [];

  onInit(vitest) {
    this.#vitest = vitest;
    // After vitest's summary and the errors of a global teardown, and also when another reporter ends the run.
    if (!vitest.config.watch) process.once("exit", () => this.#print());
  }

  onTestRunStart() {
    this.#configFile = this.#vitest.vite.config.configFile;
    this.#failures.clear();
    this.#skipped.clear();
    this.#outside = [];
  }

  onTestCaseResult(test) {
    const { state, errors } = test.result();
    if (state === "failed") this.#failures.set(test.id, { task: test, errors });
    if (state === "skipped") this.#skipped.set(test.id, test);
  }

  /** A group or a file has errors of its own if it cannot be loaded, or if what runs before or after all of its tests fails. */
  onTestModuleEnd(module) {
    for (const test of module.children.allTests()) this.onTestCaseResult(test);
    for (const task of [module, ...module.children.allSuites()])
      if (task.errors().length > 0) this.#failures.set(task.id, { task, errors: task.errors() });
  }

  onTestRunEnd(_modules, unhandledErrors) {
    this.#outside = unhandledErrors;
    if (this.#vitest.config.watch) this.#print();
  }

  #print() {
    const failures = [
      ...[...this.#failures.values()].map((failure) => this.#failureLines(failure)),
      ...this.#outside.map((error) => [outsideTitle(error), ...messageOf([error])]),
    ];
    const more = failures.length - shownFailures;
    const lines = [
      ...(failures.length === 0 ? [] : ["", "Failed:"]),
      ...failures.slice(0, shownFailures).flatMap((one) => ["", ...one]),
      ...(more > 0 ? ["", `and ${more} more`] : []),
      ...this.#skipLines(),
    ];
    if (lines.length > 0) process.stdout.write(`${lines.join("\n")}\n`);
  }

  #failureLines({ task, errors }) {
    const module = moduleOf(task);
    const title = [module.project.name, [module.relativeModuleId, ...namesOf(task)].join(" > ")];
    return [plain(title.join(" ").trim()), ...messageOf(errors), `  ${this.#commandFor(task, errors)}`];
  }

  #commandFor(task, errors) {
    const { project, relativeModuleId } = moduleOf(task);
    const names = namesOf(task);
    const seed = /\bseed\W{1,3}(-?\d+)/i.exec(
      [...names, textOf(errors)].join("\n").replaceAll("_", " "),
    )?.[1];
    const pattern = `^${names.map(asPattern).join(" ")}${task.type === "test" ? "$" : " "}`;
    return [
      ...(seed === undefined ? [] : [`BRIG_TEST_SEED=${seed}`]),
      "npx vitest run",
      ...(this.#configFile ? [`--config ${quoted(relative(process.cwd(), this.#configFile))}`] : []),
      ...(project.name === "" ? [] : [`--project ${quoted(project.name)}`]),
      quoted(relativeModuleId),
      ...(names.length === 0 ? [] : [`-t ${quoted(pattern)}`]),
    ].join(" ");
  }

  #skipLines() {
    const counts = new Map();
    for (const test of this.#skipped.values()) {
      const reason = this.#reasonFor(test);
      if (reason !== null) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
    const sorted = [...counts].toSorted(([, one], [, other]) => other - one);
    return [
      ...(sorted.length === 0 ? [] : ["", "Skipped:"]),
      ...sorted.map(([reason, count]) => `  ${count} ${count === 1 ? "test" : "tests"}: ${plain(reason)}`),
    ];
  }

  /** Null for a test that nobody has skipped: `-t` has left it out, or what runs before it has failed. */
  #reasonFor(test) {
    const { note } = test.result();
    if (note) return note;
    const groups = groupsOf(test);
    if (groups.some((group) => group.errors().length > 0)) return null;
    const inName = [test, ...groups].map(reasonIn).find((reason) => reason !== undefined);
    if (inName !== undefined) return inName;
    return this.#vitest.config.testNamePattern === undefined
      ? `no reason in ${test.module.relativeModuleId}`
      : null;
  }
}

/** A name has the reason in brackets. A promise that a test proves is in brackets too, as one word. */
function reasonIn({ name = "" }) {
  return /\[([^[\]]* [^[\]]*)\]/.exec(name)?.[1];
}

/** The groups that a test is in, from the innermost to the file. */
function groupsOf({ parent }) {
  return parent === undefined ? [] : [parent, ...groupsOf(parent)];
}

function moduleOf(task) {
  return task.type === "module" ? task : task.module;
}

function namesOf(task) {
  if (task.type === "module") return [];
  const groups = groupsOf(task).filter(({ type }) => type === "suite");
  return [...groups.toReversed(), task].map(({ name }) => name);
}

/** vitest notes which file its process was in when the error came. */
function outsideTitle({ VITEST_TEST_PATH: path }) {
  return ["an error outside of tests", ...(path ? [`while ${relative(process.cwd(), path)} ran`] : [])].join(
    ", ",
  );
}

function textOf(errors) {
  return errors.map((error) => `${error.message ?? error}`).join("\n");
}

function messageOf(errors) {
  const lines = textOf(errors).split("\n");
  const left = lines.length - messageLines;
  const shown = lines.slice(0, messageLines).map((line) => plain(line).slice(0, lineWidth));
  return [...shown, ...(left > 0 ? [`(${left} more lines)`] : [])].map((line) => `  ${line}`);
}

/** What a container has printed may be in it. */
function plain(text) {
  return stripVTControlCharacters(text).replace(/\p{Cc}/gu, " ");
}

/** A line break could not be pasted into every shell. */
function asPattern(name) {
  return name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&").replace(/\p{Cc}/gu, "\\W");
}

function quoted(word) {
  return /^[\w./:=@,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
