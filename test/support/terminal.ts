import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa, type ResultPromise } from "execa";
import { onTestRuntime, program } from "./cli.js";
import { type TemporaryDirectory, temporaryDirectory } from "./sandbox.js";
import { Screen } from "./screen.js";

const patienceMs = 60_000;

/** What the terminal was set to before and after the program, and how the program ended. */
export interface TerminalOutcome {
  exitStatus: number;
  settingsBefore: string;
  settingsAfter: string;
  /** The same of the moment when it was stopped as a job; with `isJob` alone. */
  stopped?: { exitStatus: number; settings: string };
}

export interface TerminalOptions {
  cwd: string;
  /**
   * On top of this process's environment; an empty variable counts as unset. `CI` is unset, since a test opens a
   * terminal to be a person there, also where the tests themselves run in CI.
   */
  env?: Record<string, string>;
  /** The shell has job control: it brings the program, once it is stopped, back to the foreground. Default: false. */
  isJob?: boolean;
  /** Default: 100. */
  columns?: number;
  /** What it answers when it is asked what it is. Default: what xterm answers. */
  answers?: string;
}

/** The one that every terminal answers. */
const lastQuestion = "\x1b[c";
/** What xterm answers to it. */
const attributes = "\x1b[?1;2c";

const firstSize = { rows: 30, cols: 100 };

/** The built program on a real pseudo-terminal of the host. util-linux's `script` makes it, `stty` changes its size. */
export class Terminal implements AsyncDisposable {
  /** What a person sees. */
  readonly screen: Screen;
  readonly #script: ResultPromise<{ reject: false; stdin: "pipe"; buffer: false }>;
  readonly #notes: TemporaryDirectory;
  readonly #isJob: boolean;
  #shown = "";
  /** Until the screen shows what has come: it is drawn a while later. */
  #drawn: Promise<void> = Promise.resolve();

  private constructor(
    notes: TemporaryDirectory,
    {
      command,
      cwd,
      env,
      isJob = false,
      columns = firstSize.cols,
      answers,
    }: TerminalOptions & { command: string },
  ) {
    this.screen = new Screen({ ...firstSize, cols: columns });
    this.#notes = notes;
    this.#isJob = isJob;
    this.#script = execa("script", ["--quiet", "--flush", "--command", command, "/dev/null"], {
      reject: false,
      stdin: "pipe",
      buffer: false,
      cwd,
      env: { SHELL: "/bin/sh", TERM: "xterm-256color", CI: "", ...env },
    });
    if (answers === undefined) this.screen.terminal.onData((answer) => this.type(answer));
    this.#script.stdout.setEncoding("utf8").on("data", (text: string) => {
      const wasAsked = this.#shown.includes(lastQuestion);
      this.#shown += text;
      if (answers !== undefined && !wasAsked && this.#shown.includes(lastQuestion)) this.type(answers);
      this.#drawn = this.screen.write(text);
    });
  }

  /** Starts `brig` with these arguments on a terminal of 30 rows and 100 columns, unless other ones are asked for. */
  static async open(args: string[], options: TerminalOptions): Promise<Terminal> {
    return await Terminal.openProgram([process.execPath, program, ...onTestRuntime(args)], options);
  }

  /** Starts another program. */
  static async openProgram(argv: string[], options: TerminalOptions): Promise<Terminal> {
    const notes = await temporaryDirectory();
    const note = (name: string) => quote(join(notes.path, name));
    const call = argv.map(quote).join(" ");
    const start = `sh -c 'echo $$ > "$0"; exec "$@"' ${note("pid")} ${call}`;
    const asJob = ["set -m", start, `echo $? > ${note("stopped")}`, `stty -g > ${note("between")}`, "fg"];
    const command = [
      // Ctrl-C goes to this shell too, which has to note how the program ended.
      "trap : INT",
      `tty > ${note("tty")}`,
      `stty rows ${firstSize.rows} cols ${options.columns ?? firstSize.cols}`,
      `stty -g > ${note("before")}`,
      ...(options.isJob === true ? asJob : [start]),
      `echo $? > ${note("status")}`,
      `stty -g > ${note("after")}`,
    ].join("; ");
    return new Terminal(notes, { ...options, command });
  }

  /** Everything shown so far, control sequences included. */
  get shown(): string {
    return this.#shown;
  }

  /** What would have been done besides drawing and answering the one time that brig asks. */
  get deeds(): string[] {
    const own = this.screen.deeds.indexOf(`answer ${JSON.stringify(attributes)}`);
    return this.#shown.includes(lastQuestion)
      ? this.screen.deeds.toSpliced(own, own === -1 ? 0 : 1)
      : this.screen.deeds;
  }

  type(keys: string): void {
    this.#script.stdin.write(keys);
  }

  /** Waits until the terminal shows this. */
  async waitFor(pattern: RegExp): Promise<void> {
    const deadline = Date.now() + patienceMs;
    while (!pattern.test(this.#shown)) {
      if (Date.now() > deadline)
        throw new Error(`${pattern} did not come; the terminal shows:\n${this.#shown}`);
      await sleep(20);
    }
  }

  /** Waits until what a person sees, with rows that are scrolled away where that is asked for, matches. */
  async waitForScreen(pattern: RegExp, { withHistory = false } = {}): Promise<void> {
    const deadline = Date.now() + patienceMs;
    const seen = () => (withHistory ? this.screen.history : this.screen.rows).join("\n");
    while (!pattern.test(seen())) {
      if (Date.now() > deadline) throw new Error(`${pattern} did not come; a person sees:\n${seen()}`);
      await sleep(20);
    }
  }

  /** Whether what a person sees matches before the program ends, or before it matches `end`. */
  async showsBeforeItsEnd(pattern: RegExp, end?: RegExp): Promise<boolean> {
    let hasEnded = false;
    void this.#script.finally(() => {
      hasEnded = true;
    });
    while (!hasEnded) {
      const seen = this.screen.rows.join("\n");
      if (pattern.test(seen)) return true;
      if (end?.test(seen)) return false;
      await sleep(20);
    }
    return false;
  }

  /** As a window manager does it: the kernel tells the foreground programs. */
  async resize(rows: number, cols: number): Promise<void> {
    this.screen.resize({ rows, cols });
    await execa("stty", ["-F", await this.#note("tty"), "rows", `${rows}`, "cols", `${cols}`]);
  }

  /** The process id of the program. */
  async pid(): Promise<number> {
    return Number(await this.#note("pid"));
  }

  /** Waits for the program's end. */
  async end(): Promise<TerminalOutcome> {
    const timer = setTimeout(() => this.#script.kill("SIGKILL"), patienceMs);
    await this.#script;
    clearTimeout(timer);
    await this.#drawn;
    return {
      exitStatus: Number(await this.#note("status")),
      settingsBefore: await this.#note("before"),
      settingsAfter: await this.#note("after"),
      ...(this.#isJob
        ? {
            stopped: {
              exitStatus: Number(await this.#note("stopped")),
              settings: await this.#note("between"),
            },
          }
        : {}),
    };
  }

  /** The terminal goes away under the program. */
  async closeWindow(): Promise<void> {
    this.#script.kill("SIGKILL");
    await this.#script;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#script.kill("SIGTERM");
    await this.#script;
    await this.#notes[Symbol.asyncDispose]();
  }

  async #note(name: string): Promise<string> {
    return (await readFile(join(this.#notes.path, name), "utf8")).trim();
  }
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
