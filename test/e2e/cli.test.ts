import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, open, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig, containersOf, onTestRuntime, program } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { temporaryDirectory } from "../support/sandbox.js";

let workspace: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  workspace = directory.path;
});

describe("brig", () => {
  it("without arguments prints its help", async () => {
    const { exitCode, stdout, stderr } = await brigHere([]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^Usage: brig/);
    for (const command of ["exec", "shell", "tool", "tools", "gc"])
      expect(stdout).toMatch(new RegExp(`^  ${command} `, "m"));
    expect(stderr).toBe("");
  });

  it("prints its version", async () => {
    expect((await brig(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("prints the help of a command in both spellings", async () => {
    const { stdout } = await brigHere(["exec", "--help"]);
    expect(stdout).toContain("--timeout <time>");
    expect((await brigHere(["help", "exec"])).stdout).toBe(stdout);
  });

  it.each(["exec", "shell", "tool"])(
    "the help of %s says that it reads no configuration",
    async (command) => {
      expect((await brigHere([command, "--help"])).stdout).toContain("This command reads no config.toml");
    },
  );

  it("suggests the command that was meant", async () => {
    const { exitCode, stderr } = await brigHere(["exce"]);
    expect(exitCode).toBe(2);
    expect(stderr).toBe("brig: unknown command 'exce'\n(Did you mean exec?)\nhint: see: brig --help\n");
  });

  it("fails where its output cannot be written, even the last byte of it", async () => {
    // The descriptor itself: a pipe in between would be closed at some time, which is another failure.
    await using full = await open("/dev/full", "w");
    const { status, stderr } = spawnSync(process.execPath, [program, "--help"], {
      stdio: ["ignore", full.fd, "pipe"],
      encoding: "utf8",
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^brig: cannot write to standard output: ENOSPC/);
  });
});

describe("in a directory that was removed", () => {
  /** A shell that removes it under itself. */
  async function runGone(args: string[]) {
    await using folder = await temporaryDirectory();
    const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"';
    return await execa("sh", ["-c", script, "sh", process.execPath, program, ...args], {
      cwd: folder.path,
      env: { BRIG_HOME: join(folder.path, "home"), CODEX_HOME: join(folder.path, "home") },
      reject: false,
      stdin: "ignore",
    });
  }

  it.each([[["--help"]], [["--version"]], [["tool", "--help"]], [["image", "ls"]], [["sessions"]]])(
    "%j works",
    async (args) => {
      const done = await runGone(args);
      expect(done.stderr).toBe("");
      expect(done.exitCode).toBe(0);
    },
  );

  it.each([
    [["exec", "--", "true"], 125],
    [["run", "--script", "x", "go"], 2],
    [["config", "show"], 2],
    [["tool", "list_dir", "{}"], 2],
  ])("%j says so", async (args, exitCode) => {
    const done = await runGone(args);
    expect(done.stderr).toMatch(/^brig: the current directory is gone[^\n]*\nhint: [^\n]*$/);
    expect(done.stdout).toBe("");
    expect(done.exitCode).toBe(exitCode);
  });
});

describe("a BRIG_HOME that is a file", () => {
  it.each([
    [["sessions"], 2],
    [["login", "status"], 2],
    [["config", "show"], 2],
    [["run", "--script", "x", "go"], 2],
    [["exec", "--", "true"], 125],
  ])("is told by %j", async (args, exitCode) => {
    const done = await brigHere(args, { cwd: workspace, env: { BRIG_HOME: "/etc/passwd" } });
    expect(done.stderr).toBe(
      "brig: brig keeps its files in /etc/passwd, but that is not a directory\n" +
        "hint: set BRIG_HOME to a directory, or unset it to use ~/.brig\n",
    );
    expect(done.exitCode).toBe(exitCode);
  });

  it("keeps nobody from the help", async () => {
    const done = await brigHere(["run", "--help"], { env: { BRIG_HOME: "/etc/passwd" } });
    expect(done.exitCode).toBe(0);
  });
});

describe("brig replay of what is no session", () => {
  it.each([
    ["a text", "/etc/passwd", "/etc/passwd is not the file of a session"],
    ["JSON lines of something else", "other.jsonl", "other.jsonl is not the file of a session"],
    ["a directory", "/tmp", "the session file /tmp cannot be read: it is a directory"],
  ])("says so of %s", async (_, file, message) => {
    await writeFile(join(workspace, "other.jsonl"), '{"a":1}\n');
    const done = await brigHere(["replay", file.replace(/^other/, join(workspace, "other"))], {
      cwd: workspace,
    });
    expect(done.stderr).toContain(message);
    expect(done.exitCode).toBe(2);
  });
});

describe("brig exec", () => {
  it("passes the streams on apart and exits as the command does", async () => {
    const script = 'echo "$PWD"; echo oops >&2; exit 7';
    const { exitCode, stdout, stderr } = await brig(["exec", "--", "sh", "-c", script], { cwd: workspace });
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 7, stdout: `${workspace}\n`, stderr: "oops\n" });
  });

  it("says with BRIG_TRACE=1 where the milliseconds go, in their order", async () => {
    const { stdout, stderr } = await brig(["exec", "--", "echo", "here"], {
      cwd: workspace,
      env: { BRIG_TRACE: "1" },
    });
    expect(stdout).toBe("here\n");
    const steps = [...stderr.matchAll(/^brig: +([\d.]+) ms +\+[\d.]+ {2}(.+)$/gm)];
    const times = steps.map(([, ms]) => Number(ms));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    const names = steps.map(([, , name]) => name);
    expect(names[0]).toBe("the command line program is loaded");
    expect(names).toContain("the container is started");
    expect(names.at(-1)).toBe("everything is closed");
  });

  it("passes five megabytes of any bytes in and out unchanged", async () => {
    const input = randomBytes(5 * 1024 * 1024);
    const call = [program, ...onTestRuntime(["exec", "-i", "--", "cat"])];
    const { exitCode, stdout } = await execa(process.execPath, call, {
      cwd: workspace,
      input,
      encoding: "buffer",
      stripFinalNewline: false,
    });
    expect(exitCode).toBe(0);
    expect(Buffer.compare(Buffer.from(stdout), input)).toBe(0);
  });

  it("passes 300 MB on to a slow reader to the last byte", async () => {
    const child = brig(["exec", "--", "head", "-c", "300000000", "/dev/zero"], {
      cwd: workspace,
      keepsOutput: false,
    });
    let bytes = 0;
    for await (const chunk of child.stdout) {
      bytes += chunk.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await child).exitCode).toBe(0);
    expect(bytes).toBe(300_000_000);
  });

  it("does not wait for input that was not asked for", async () => {
    const child = brig(["exec", "--", "cat"], { cwd: workspace, holdsInputOpen: true });
    const { exitCode, stdout } = await child;
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
  });

  it("ends when the command ends, whoever still holds its input open", async () => {
    const child = brig(["exec", "-i", "--", "head", "-n1"], { cwd: workspace, holdsInputOpen: true });
    child.stdin.write("first\n");
    expect((await child).stdout).toBe("first\n");
  });

  it.each([
    [
      "124 when it times out",
      ["--timeout", "0.3", "--", "sleep", "60"],
      124,
      /^brig: stopped after .*--timeout/,
    ],
    [
      "127 when it is not found",
      ["--", "no-such-program"],
      127,
      /^brig: no-such-program: command not found\nbrig: .* not found in the image brig\/base; use --container-image NAME .*\n$/,
    ],
    [
      "127 when it is a whole line",
      ["fix the tests"],
      127,
      /^brig: fix the tests: command not found\nbrig: .*; to give a model a task: brig run 'TASK'\n$/,
    ],
    [
      "126 when it cannot be executed",
      ["--", "/etc/passwd"],
      126,
      /^brig: \/etc\/passwd: permission denied\n$/,
    ],
    ["137 when SIGKILL ended it", ["--", "sh", "-c", "kill -9 $$"], 137, /^$/],
    ["125 when the exit code was its own", ["--", "sh", "-c", "exit 125"], 125, /^$/],
  ])("exits with %s", async (_name, args, status, complaint) => {
    const { exitCode, stdout, stderr } = await brigHere(["exec", ...args], { cwd: workspace });
    expect(exitCode).toBe(status);
    expect(stdout).toBe("");
    expect(stderr).toMatch(complaint);
  });

  it("takes everything after the command for the command's own", async () => {
    const { stdout } = await brigHere(["exec", "echo", "--json", "-x", "--", "--help"], { cwd: workspace });
    expect(stdout).toBe("--json -x -- --help\n");
  });

  it("sets variables for the command and passes none of its own", async () => {
    const { stdout } = await brigHere(["exec", "--env", "A=1", "--env", "B=x=y", "--", "env"], {
      cwd: workspace,
      env: { SECRET_TOKEN: "canary-7d1f" },
    });
    expect(stdout).toMatch(/^A=1$/m);
    expect(stdout).toMatch(/^B=x=y$/m);
    expect(stdout).not.toContain("canary-7d1f");
  });

  it("gives the command a terminal with -t", async () => {
    const { stdout } = await brigHere(["exec", "-t", "--", "sh", "-c", "tty; stty size"], { cwd: workspace });
    expect(stdout).toMatch(/^\/dev\/pts\/\d+\r\n24 80\r\n$/);
  });

  it("obeys the mode: what may be written and what not", async () => {
    const write = ["--", "sh", "-c", "echo x > file"];
    expect((await brigHere(["exec", "-s", "read-only", ...write], { cwd: workspace })).exitCode).not.toBe(0);
    expect((await brigHere(["exec", ...write], { cwd: workspace })).exitCode).toBe(0);
  });

  it("takes the workspace from -C and further directories from --add-dir, relative to where it was started", async () => {
    await mkdir(join(workspace, "inner"));
    await mkdir(join(workspace, "more"));
    const script = 'echo "$PWD"; echo x > ../more/file';
    const args = ["exec", "-C", "inner", "--add-dir", "more", "--", "sh", "-c", script];
    expect(await brigHere(args, { cwd: workspace })).toMatchObject({
      exitCode: 0,
      stdout: `${workspace}/inner\n`,
    });
  });

  it("without a workspace starts in the root directory, or where -C says", async () => {
    const pwd = async (...flags: string[]) =>
      (await brigHere(["exec", "--workspace", "none", ...flags, "--", "pwd"], { cwd: workspace })).stdout;
    expect(await pwd()).toBe("/\n");
    expect(await pwd("-C", "/etc")).toBe("/etc\n");
  });

  it("with --json prints one object", async () => {
    const { exitCode, stdout, stderr } = await brigHere(
      ["exec", "-i", "--json", "--", "sh", "-c", "cat; echo bad >&2; exit 3"],
      { cwd: workspace, input: "given" },
    );
    expect(exitCode).toBe(3);
    expect(stderr).toBe("");
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({
      exitCode: 3,
      signal: null,
      stdout: "given",
      stderr: "bad\n",
      timedOut: false,
    });
    expect(result.durationMs).toBeGreaterThan(0);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("on %s ends the command, exits with %i and leaves no container", async (signal, status) => {
    const child = brig(["exec", "--", "sh", "-c", "trap '' TERM; echo started; sleep 600"], {
      cwd: workspace,
    });
    await once(child.stdout, "data");
    child.kill(signal);
    const { exitCode, stderr } = await child;
    expect(exitCode).toBe(status);
    expect(stderr).toBe(`brig: interrupted by ${signal}\n`);
    expect(await containersOf(child.pid)).toEqual([]);
  });

  it("on SIGINT while the sandbox starts leaves no container", async () => {
    const child = brig(["exec", "--", "sleep", "600"], { cwd: workspace });
    while ((await containersOf(child.pid)).length === 0) if (child.exitCode !== null) break;
    child.kill("SIGINT");
    expect((await child).exitCode).toBe(130);
    expect(await containersOf(child.pid)).toEqual([]);
  });

  it("ends quietly when nobody reads its output any more", async () => {
    const child = brig(["exec", "--", "yes"], { cwd: workspace, keepsOutput: false });
    await once(child.stdout, "data");
    child.stdout.destroy();
    const { exitCode, stderr } = await child;
    expect({ exitCode, stderr }).toEqual({ exitCode: 141, stderr: "" });
    expect(await containersOf(child.pid)).toEqual([]);
  });

  it("on SIGINT does not wait for a reader that has stopped reading", async () => {
    const child = brig(["exec", "--", "yes"], { cwd: workspace, keepsOutput: false });
    await once(child.stdout, "data");
    child.stdout.pause();
    child.kill("SIGINT");
    await once(child, "exit");
    expect(child.exitCode).toBe(130);
    child.stdout.destroy();
  });

  it("with --keep leaves the container running, which gc knows about", async () => {
    const { exitCode, stderr } = await brig(["exec", "--keep", "--", "true"], { cwd: workspace });
    const [, id = ""] = /the container ([0-9a-f]{12}) keeps running/.exec(stderr) ?? [];
    const engine = await testEngine();
    onTestFinished(() => engine.removeContainer(id));
    expect(exitCode).toBe(0);
    expect((await engine.inspectContainer(id))?.running).toBe(true);
    const verdict = async (...flags: string[]) => {
      const { stdout } = await brig(["gc", "--dry-run", "--json", ...flags]);
      return JSON.parse(stdout).containers.find((one: { id: string }) => one.id.startsWith(id));
    };
    expect(await verdict()).toMatchObject({ verdict: "kept-on-request", removed: false });
    expect(await verdict("--kept")).toMatchObject({ verdict: "owner-gone", removed: false });
  });
});

describe("brig exec refuses bad input with 125, since a command may exit with anything else", () => {
  it.each([
    ["no command", ["exec"], "missing required argument 'command'", "see: brig exec --help"],
    ["an empty command", ["exec", "--", ""], "the command is empty", "see: brig exec --help"],
    [
      "an unknown mode",
      ["exec", "-s", "writable", "--", "true"],
      '"writable" is not a sandbox mode',
      "use one of",
    ],
    [
      "an unknown option",
      ["exec", "--tiemout", "3", "--", "true"],
      "unknown option '--tiemout'",
      "brig exec --help",
    ],
    [
      "a missing workspace",
      ["exec", "-C", "gone", "--", "true"],
      "does not exist",
      "create it, or give another path",
    ],
    ["a workspace that is a file", ["exec", "-C", "file", "--", "true"], "is not a directory", "hint: "],
    ["a protected place", ["exec", "-C", "/etc", "--", "true"], '"/etc" may not be the workspace', "hint: "],
    ["an absent policy", ["exec", "--policy", "no.toml", "--", "true"], "no.toml", "hint: "],
    ["an absent directory to add", ["exec", "--add-dir", "gone", "--", "true"], "does not exist", "hint: "],
    ["a later kind of workspace", ["exec", "--workspace", "copy", "--", "true"], "not supported", "bind"],
    [
      "a kind of workspace nobody knows",
      ["exec", "--workspace", "x", "--", "true"],
      "not a kind of workspace",
      "bind",
    ],
    [
      "a bad cwd",
      ["exec", "--workspace", "none", "-C", "/gone", "--", "true"],
      "/gone cannot be entered",
      "hint: ",
    ],
    ["a bad variable", ["exec", "--env", "A", "--", "true"], "NAME=VALUE", "hint: "],
    ["a bad timeout", ["exec", "--timeout", "soon", "--", "true"], "It must be seconds", "hint: "],
    [
      "a timeout beyond all timers",
      ["exec", "--timeout", "99999999999", "--", "true"],
      "option '--timeout <time>' argument '99999999999' is invalid. It must be more than nothing, and at most 480 h 00 m.",
      "hint: ",
    ],
    [
      "a timeout of nothing",
      ["exec", "--timeout", "0", "--", "true"],
      "'0' is invalid. It must be more than nothing",
      "hint: ",
    ],
    [
      "a missing image",
      ["exec", "--container-image", "brig/none:x", "--", "true"],
      'no image "brig/none:x"',
      "hint: ",
    ],
    ["an unknown runtime", ["exec", "--runtime", "no-such", "--", "true"], "no-such", ""],
    ["a terminal for a program", ["exec", "-t", "--json", "--", "true"], "cannot be combined", "hint: "],
  ])("%s", async (_name, args, message, hint) => {
    await writeFile(join(workspace, "file"), "");
    const { exitCode, stdout, stderr } = await brigHere(args, { cwd: workspace });
    expect(exitCode).toBe(125);
    expect(args.includes("--json") ? JSON.parse(stdout).error.message : stderr).toContain(message);
    expect(stdout + stderr).toContain(hint.replace("hint: ", ""));
  });

  it("no engine, as text and as JSON", async () => {
    const nowhere = { cwd: workspace, env: { DOCKER_HOST: "unix:///proc/nonexistent" } };
    const { exitCode, stdout, stderr } = await brigHere(["exec", "--", "true"], nowhere);
    expect({ exitCode, stdout }).toEqual({ exitCode: 125, stdout: "" });
    expect(stderr).toMatch(/^brig: the container engine at unix:\/\/\/proc\/nonexistent.*\nhint: .+\n$/);
    const asJson = await brigHere(["exec", "--json", "--", "true"], nowhere);
    expect(asJson.exitCode).toBe(125);
    expect(asJson.stderr).toBe("");
    expect(JSON.parse(asJson.stdout).error).toMatchObject({
      code: "engine.unreachable",
      hint: expect.any(String),
    });
  });

  it("a program in the workspace that is not executable gives 126", async () => {
    await writeFile(join(workspace, "tool"), "#!/bin/sh\n");
    await chmod(join(workspace, "tool"), 0o644);
    expect((await brigHere(["exec", "--", "./tool"], { cwd: workspace })).exitCode).toBe(126);
  });

  it("names in messages cannot act on the terminal", async () => {
    const { stderr } = await brigHere(["exec", "-C", "gone\x1b[2J\x07\u202e", "--", "true"], {
      cwd: workspace,
    });
    expect(stderr).toContain("does not exist");
    expect(stderr).not.toMatch(/(?!\n)[\p{Cc}\u202e]/u);
  });

  it("the causes of an error are shown on request", async () => {
    const env = { DOCKER_HOST: "unix:///proc/nonexistent", BRIG_DEBUG: "1" };
    expect((await brigHere(["exec", "--", "true"], { cwd: workspace, env })).stderr).toContain("caused by: ");
  });
});

describe("brig gc", () => {
  it("removes what a program that was killed left: its container, and the empty directories it held", async () => {
    await using home = await temporaryDirectory();
    const env = { BRIG_HOME: home.path };
    const held = [".agents", ".brig", ".codex", ".git"];
    const child = brig(["exec", "--", "sh", "-c", "echo started; sleep 600"], { cwd: workspace, env });
    await once(child.stdout, "data");
    const [id = ""] = await containersOf(child.pid);
    child.kill("SIGKILL");
    await child;
    expect(await readdir(workspace)).toEqual(held);
    const rehearsal = await brig(["gc", "--dry-run", "--json"], { env });
    expect(JSON.parse(rehearsal.stdout).placeholders).toEqual([]);
    expect(await readdir(workspace)).toEqual(held);
    const { exitCode, stdout, stderr } = await brig(["gc", "--json"], { env });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(await (await testEngine()).inspectContainer(id)).toBeNull();
    expect(JSON.parse(stdout).placeholders.toSorted()).toEqual(held.map((name) => join(workspace, name)));
    expect(await readdir(workspace)).toEqual([]);
  });

  it("without an engine exits with 125", async () => {
    expect((await brigHere(["gc"], { env: { DOCKER_HOST: "unix:///proc/nonexistent" } })).exitCode).toBe(125);
  });
});

describe("brig image prune", () => {
  it("in a dry run says what would go and what that would free, and removes nothing", async () => {
    const report = async () => JSON.parse((await brigHere(["image", "prune", "--dry-run", "--json"])).stdout);
    const namesIn = ({ objects }: { objects: { names: string[] }[] }) => objects.map(({ names }) => names);
    const before = await report();
    expect(before).toEqual({ objects: expect.any(Array), bytes: expect.any(Number) });
    const { exitCode, stdout } = await brig(["image", "prune", "--dry-run"]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^nothing to remove\n$|\nwould free [\d.]+ \w+\n$/);
    expect(namesIn(await report())).toEqual(expect.arrayContaining(namesIn(before)));
  });
});

describe("brig tool", () => {
  it("makes one call and prints what the model would read", async () => {
    const { exitCode, stdout } = await brig(["tool", "shell_command", '{"command":"echo $((6*7))"}'], {
      cwd: workspace,
    });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/42\n$/);
  });

  it("exits with 1 when the call failed", async () => {
    const { exitCode, stdout } = await brigHere(["tool", "shell_command", '{"command":"exit 3"}'], {
      cwd: workspace,
    });
    expect(exitCode).toBe(1);
    expect(stdout).toContain("Exit code: 3");
  });

  it("reads the arguments from standard input and prints JSON", async () => {
    const { stdout } = await brigHere(["tool", "--json", "shell_command", "-"], {
      cwd: workspace,
      input: '{"command":"echo hi"}',
    });
    expect(JSON.parse(stdout)).toMatchObject({ success: true, content: expect.stringContaining("hi\n") });
  });

  it.each([
    ["an unknown tool", ["shel", "{}"], "did you mean shell?"],
    ["arguments that are not JSON", ["shell", "{"], "are not JSON"],
    [
      "arguments that do not fit",
      ["shell", '{"command":5}'],
      "`command`: Invalid input: expected array, received number",
    ],
  ])("refuses %s with 2", async (_name, args, complaint) => {
    const { exitCode, stdout, stderr } = await brigHere(["tool", ...args], { cwd: workspace });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain(complaint);
  });

  it.each([
    ["an empty command", [], "the command is empty"],
    ["a NUL in an argument", ["echo", "a\0b"], "NUL"],
    ["an argument over 128 KiB", ["echo", "x".repeat(128 * 1024)], "131072 bytes"],
  ])("tells the model of %s", async (_name, command, complaint) => {
    const input = JSON.stringify({ command });
    const { exitCode, stdout, stderr } = await brigHere(["tool", "shell", "-"], {
      cwd: workspace,
      input,
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: "" });
    expect(stdout).toContain(complaint);
  });
});

describe("brig tools", () => {
  it("lists the tools, and why each is on or off", async () => {
    const { exitCode, stdout } = await brigHere(["tools"]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^exec_command +on +yes +tools\.shell = unified_exec \(default\)$/m);
    expect(stdout).toMatch(/^shell +off/m);
    expect(stdout).toMatch(/^request_user_input +off .*nobody can answer here/m);
  });

  it("goes by the model's family and by what -c says", async () => {
    const { stdout } = await brigHere(["tools", "-m", "codex-mini-latest", "-c", "tools.web_search=true"]);
    expect(stdout).toMatch(/^local_shell +on +no +tools\.shell = local \(model codex-mini-latest\)$/m);
    expect(stdout).toMatch(/^exec_command +off +yes +tools\.shell = local \(model codex-mini-latest\)$/m);
    expect(stdout).toMatch(/^web_search +on +yes +tools\.web_search = live \(-c\)$/m);
  });

  it("lists them as JSON", async () => {
    const tools = JSON.parse((await brig(["tools", "--json"])).stdout);
    expect(tools).toContainEqual(
      expect.objectContaining({ name: "shell", isOn: false, supportsParallel: false }),
    );
  });
});
