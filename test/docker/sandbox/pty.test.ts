import { createHash } from "node:crypto";
import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import type { SandboxProcess, SpawnOptions } from "../../../src/sandbox/sandbox-types.js";
import { runningCommands } from "../../support/processes.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

/** A process on a terminal, with all it has printed so far. */
class Terminal {
  readonly process: SandboxProcess;
  text = "";

  constructor(process: SandboxProcess) {
    this.process = process;
    process.stdout.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
    });
  }

  type(keys: string): void {
    this.process.stdin!.write(keys);
  }

  async shows(pattern: string | RegExp): Promise<void> {
    await expect.poll(() => this.text, { interval: 5 }).toMatch(pattern);
  }
}

async function openTerminal(sandbox: Sandbox, argv: string[], options: SpawnOptions = {}): Promise<Terminal> {
  return new Terminal(await sandbox.spawn(argv, { pty: { rows: 24, cols: 80 }, ...options }));
}

describe("a command on a terminal", () => {
  sandboxTest(
    "sees a terminal of the size it was given, and the new size after a resize",
    async ({ sandbox }) => {
      const terminal = await openTerminal(sandbox, ["sh", "-c", "stty size; read -r _; stty size"], {
        pty: { rows: 31, cols: 77 },
      });
      await terminal.shows("31 77");
      terminal.process.resize({ rows: 50, cols: 132 });
      terminal.type("\n");
      await terminal.shows("50 132");
      expect((await terminal.process.exit).exitCode).toBe(0);
    },
  );

  sandboxTest.skipIf(differs("pty.window-change"))(
    titled("pty.window-change", "is told of a resize by a signal"),
    async ({ sandbox }) => {
      const script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done";
      const terminal = await openTerminal(sandbox, ["bash", "-c", script]);
      await terminal.shows("ready");
      terminal.process.resize({ rows: 10, cols: 20 });
      await terminal.shows("10 20");
      expect((await terminal.process.exit).exitCode).toBe(0);
    },
  );

  sandboxTest.skipIf(differs("pty.dev-tty"))(
    titled("pty.dev-tty", "has it as its controlling terminal on all three streams"),
    async ({ sandbox }) => {
      const script = "tty; test -t 0 && test -t 1 && test -t 2 && echo all; echo direct > /dev/tty";
      const terminal = await openTerminal(sandbox, ["sh", "-c", script]);
      await terminal.process.exit;
      expect(terminal.text).toMatch(/^\/dev\/pts\/\d+\r\nall\r\ndirect\r\n$/);
      expect(terminal.process.stderr).toBeNull();
    },
  );

  sandboxTest("ctrl-C ends it", async ({ sandbox }) => {
    const terminal = await openTerminal(sandbox, ["sh", "-c", "echo ready; exec sleep 300"]);
    await terminal.shows("ready");
    terminal.type("\x03");
    expect(await terminal.process.exit).toMatchObject({ exitCode: 130, signal: "SIGINT" });
  });

  sandboxTest("ctrl-D ends its input", async ({ sandbox }) => {
    const terminal = await openTerminal(sandbox, ["sh", "-c", "stty -echo; echo ready; cat; echo end"]);
    await terminal.shows("ready");
    terminal.type("line\n");
    await terminal.shows("line");
    terminal.type("\x04");
    expect((await terminal.process.exit).exitCode).toBe(0);
    expect(terminal.text).toBe("ready\r\nline\r\nend\r\n");
  });

  sandboxTest("closing stdin ends its input as ctrl-D does", async ({ sandbox }) => {
    const terminal = await openTerminal(sandbox, ["cat"]);
    terminal.process.stdin!.end("typed\n");
    expect((await terminal.process.exit).exitCode).toBe(0);
    expect(terminal.text).toContain("typed\r\n");
  });

  sandboxTest.skipIf(differs("pty.foreground"))(
    titled("pty.foreground", "a signal goes to what runs in the foreground"),
    async ({ sandbox }) => {
      const terminal = await openTerminal(sandbox, ["bash", "--norc", "-i"]);
      terminal.type("PS1='$ '; sleep 300\n");
      await expect.poll(() => runningCommands(sandbox)).toContain("sleep 300");
      await terminal.process.kill("SIGINT");
      terminal.type("echo code $?\n");
      await terminal.shows(/code 130/);
      terminal.type("exit 5\n");
      expect((await terminal.process.exit).exitCode).toBe(5);
    },
  );

  sandboxTest("job control works in a shell", async ({ sandbox }) => {
    const terminal = await openTerminal(sandbox, ["bash", "--norc", "-i"]);
    terminal.type("PS1='$ '; sleep 300\n");
    await expect.poll(() => runningCommands(sandbox)).toContain("sleep 300");
    terminal.type("\x1a");
    await terminal.shows(/Stopped +sleep 300/);
    terminal.type("bg\n");
    await terminal.shows(/\[1\]\+ sleep 300 &/);
    terminal.type("kill %1; wait; echo 'all' 'ended'\n");
    await terminal.shows("all ended");
    terminal.type("exit\n");
    await terminal.process.exit;
    expect(await runningCommands(sandbox)).toEqual([]);
  });

  sandboxTest("a megabyte comes through whole", async ({ sandbox }) => {
    const terminal = await openTerminal(sandbox, ["sh", "-c", "stty -onlcr; seq 150000"]);
    expect((await terminal.process.exit).exitCode).toBe(0);
    const expected = Array.from({ length: 150_000 }, (_, i) => `${i + 1}\n`).join("");
    expect(terminal.text.length).toBe(expected.length);
    expect(terminal.text === expected).toBe(true);
  });

  sandboxTest("a megabyte typed into it arrives whole", async ({ sandbox }) => {
    const terminal = await openTerminal(sandbox, [
      "sh",
      "-c",
      "stty raw -echo; echo ready; head -c 1000000 | sha256sum",
    ]);
    await terminal.shows("ready");
    const line = `${"0123456789".repeat(10)}\n`;
    const typed = line.repeat(Math.ceil(1_000_000 / line.length)).slice(0, 1_000_000);
    terminal.type(typed);
    await terminal.shows(createHash("sha256").update(typed).digest("hex"));
    expect((await terminal.process.exit).exitCode).toBe(0);
  });

  sandboxTest("a timeout ends it and all that hangs on its terminal", async ({ sandbox }) => {
    const terminal = await openTerminal(
      sandbox,
      ["bash", "-c", "trap '' HUP; setsid sleep 301 & sleep 302"],
      {
        timeoutMs: 300,
      },
    );
    expect(await terminal.process.exit).toMatchObject({ timedOut: true, exitCode: 124 });
    expect(await runningCommands(sandbox)).toEqual([]);
  });

  sandboxTest(
    "a background process that keeps the terminal does not hold up the end",
    async ({ sandbox }) => {
      const terminal = await openTerminal(sandbox, [
        "bash",
        "-c",
        "trap '' HUP; sleep 30 & echo out; exit 3",
      ]);
      expect((await terminal.process.exit).exitCode).toBe(3);
      expect(terminal.text).toBe("out\r\n");
      await sandbox.exec(["pkill", "sleep"]);
    },
  );

  sandboxTest(
    "only a process with a terminal can be resized, and only to a possible size",
    async ({ sandbox }) => {
      const piped = await sandbox.spawn(["sleep", "300"]);
      expect(() => piped.resize({ rows: 1, cols: 1 })).toThrow(/pty/);
      await piped.kill();
      await expect(sandbox.spawn(["true"], { pty: { rows: 70_000, cols: 80 } })).rejects.toMatchObject({
        code: "exec.invalid",
      });
    },
  );
});
