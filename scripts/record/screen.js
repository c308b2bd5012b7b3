// Runs a program on a real pseudo-terminal and keeps what a person would see.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

// The package is CommonJS, and Node cannot detect its named exports.
const { Terminal } = createRequire(import.meta.url)("@xterm/headless");

const patienceMs = 60_000;

/** Starts `argv` on a terminal, which util-linux's `script` creates. */
export function openScreen(argv, { rows, cols, cwd, env }) {
  const terminal = new Terminal({ rows, cols, allowProposedApi: true });
  const command = `stty rows ${rows} cols ${cols}; exec ${argv.map(quote).join(" ")}`;
  const program = spawn("script", ["--quiet", "--flush", "--return", "--command", command, "/dev/null"], {
    cwd,
    env: { ...env, SHELL: "/bin/sh", TERM: "xterm-256color" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(program, "close");
  program.stdout.setEncoding("utf8").on("data", (text) => terminal.write(text));
  return {
    terminal,
    type(keys) {
      program.stdin.write(keys);
    },
    /** Waits until the text on the screen matches `pattern`. */
    async waitFor(pattern) {
      const deadline = Date.now() + patienceMs;
      while (!pattern.test(textOf(terminal))) {
        if (Date.now() > deadline)
          throw new Error(`${pattern} did not appear; the screen shows:\n${textOf(terminal)}`);
        await sleep(20);
      }
    },
    /** Waits until the program ends, and resolves to its exit status. */
    async end() {
      const [status] = await ended;
      return status;
    },
    close() {
      program.kill("SIGTERM");
    },
  };
}

function textOf(terminal) {
  const { active } = terminal.buffer;
  const lines = Array.from({ length: terminal.rows }, (_, row) => active.getLine(active.viewportY + row));
  return lines.map((line) => line.translateToString(true)).join("\n");
}

function quote(word) {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
