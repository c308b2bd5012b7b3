import { CommandExitError, InvalidArgumentError, NotFoundError, Sandbox, TimeoutError } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openServed, type Served } from "../../support/served.js";

let served: Served;
let sandbox: Sandbox;

beforeAll(async () => {
  served = await openServed();
  sandbox = await Sandbox.create({ ...served.e2b[0], validateApiKey: false });
});

afterAll(async () => {
  await sandbox.kill();
  await served[Symbol.asyncDispose]();
  expect(served.warnings).toEqual([]);
});

/** How many processes of the sandbox have this in their arguments. */
async function countOf(argument: string): Promise<number> {
  const { stdout } = await sandbox.commands.run(`pgrep -fc '[${argument[0]}]${argument.slice(1)}' || true`);
  return Number(stdout);
}

describe("a command", () => {
  it("gives its outputs and its exit code, and starts in a home that can be written", async () => {
    const result = await sandbox.commands.run('pwd; echo "$HOME"; touch here; echo err >&2');
    expect(result).toMatchObject({
      exitCode: 0,
      stdout: "/home/user\n/home/user\n",
      stderr: "err\n",
    });
    expect((await sandbox.commands.run("ls here")).stdout).toBe("here\n");
  });

  it("takes a directory, also a relative one, and variables", async () => {
    const { stdout } = await sandbox.commands.run("pwd; echo $GIVEN", { cwd: "/tmp", envs: { GIVEN: "x" } });
    expect(stdout).toBe("/tmp\nx\n");
    await sandbox.files.makeDir("below");
    expect((await sandbox.commands.run("pwd", { cwd: "below" })).stdout).toBe("/home/user/below\n");
    await expect(sandbox.commands.run("pwd", { cwd: "/nowhere" })).rejects.toBeInstanceOf(
      InvalidArgumentError,
    );
  });

  it("fails with its exit code and output", async () => {
    const failing = sandbox.commands.run("echo out; echo why >&2; exit 7");
    await expect(failing).rejects.toBeInstanceOf(CommandExitError);
    await expect(failing).rejects.toMatchObject({ exitCode: 7, stdout: "out\n", stderr: "why\n" });
  });

  it("passes much output on as it comes, in whole characters", async () => {
    let length = 0;
    const { stdout } = await sandbox.commands.run("for i in $(seq 40000); do printf 'äöü€'; done", {
      onStdout: (text) => {
        length += text.length;
      },
    });
    expect(stdout).toBe("äöü€".repeat(40_000));
    expect(length).toBe(160_000);
  });

  it("reads end of file at once unless it is to have input", async () => {
    expect((await sandbox.commands.run("cat; echo end")).stdout).toBe("end\n");
    const command = await sandbox.commands.run("cat; echo end", { background: true, stdin: true });
    await sandbox.commands.sendStdin(command.pid, "one ");
    await command.sendStdin("two\n");
    await command.closeStdin();
    expect((await command.wait()).stdout).toBe("one two\nend\n");
    await expect(sandbox.commands.sendStdin(command.pid, "late")).rejects.toBeInstanceOf(NotFoundError);
  });

  it("is listed while it runs, with what it was started with", async () => {
    const command = await sandbox.commands.run("sleep 1000", {
      background: true,
      envs: { A: "1" },
      cwd: "/tmp",
    });
    expect(await sandbox.commands.list()).toContainEqual({
      ...{ pid: command.pid, cmd: "/bin/bash", args: ["-l", "-c", "sleep 1000"] },
      ...{ envs: { A: "1" }, cwd: "/tmp" },
    });
    expect(await sandbox.commands.kill(command.pid)).toBe(true);
    await expect(command.wait()).rejects.toMatchObject({ exitCode: -1, error: "signal: SIGKILL" });
    expect((await sandbox.commands.list()).map(({ pid }) => pid)).not.toContain(command.pid);
    expect(await sandbox.commands.kill(command.pid)).toBe(false);
    expect(await sandbox.commands.kill(1)).toBe(false);
  });

  it("is killed with everything that it has started", async () => {
    const command = await sandbox.commands.run("setsid sleep 8641 & setsid sleep 8641 & sleep 8641", {
      background: true,
    });
    await expect.poll(async () => await countOf("sleep 8641")).toBeGreaterThanOrEqual(3);
    await command.kill();
    expect(await countOf("sleep 8641")).toBe(0);
  });

  it("is ended with everything that it has started when its time is over", async () => {
    const running = sandbox.commands.run("setsid sleep 8642 & sleep 8642", { timeoutMs: 1500 });
    await expect(running).rejects.toBeInstanceOf(TimeoutError);
    await expect.poll(async () => await countOf("sleep 8642")).toBe(0);
  });

  it("runs on when its client disconnects, and goes on where it was with the next one", async () => {
    const script = "echo one; read line; echo $line; read line; echo $line; exit 3";
    let seen = "";
    const command = await sandbox.commands.run(script, {
      ...{ background: true, stdin: true, timeoutMs: 0 },
      onStdout: (text) => {
        seen += text;
      },
    });
    await expect.poll(() => seen).toBe("one\n");
    await command.disconnect();
    await sandbox.commands.sendStdin(command.pid, "two\n");
    await expect.poll(async () => (await sandbox.commands.list()).length).toBe(1);
    const again = await sandbox.commands.connect(command.pid);
    expect(again.pid).toBe(command.pid);
    await again.sendStdin("three\n");
    await expect(again.wait()).rejects.toMatchObject({ exitCode: 3, stdout: "two\nthree\n" });
    await expect(sandbox.commands.connect(command.pid)).rejects.toBeInstanceOf(NotFoundError);
  });

  it("tells the next client how it has ended, if that was while nobody was connected", async () => {
    const command = await sandbox.commands.run("read line; echo $line; exit 4", {
      background: true,
      stdin: true,
    });
    await command.disconnect();
    await sandbox.commands.sendStdin(command.pid, "last\n");
    await expect.poll(async () => await sandbox.commands.list()).toEqual([]);
    const again = await sandbox.commands.connect(command.pid);
    await expect(again.wait()).rejects.toMatchObject({ exitCode: 4, stdout: "last\n" });
  });

  it("is refused for another user than the only one of the sandbox, in words that name it", async () => {
    const running = sandbox.commands.run("id -u", { user: "nobody" });
    await expect(running).rejects.toThrow(/user "nobody"/);
    const uid = (await sandbox.commands.run("id -u", { user: "user" })).stdout;
    const asRoot = await sandbox.commands
      .run("id -u", { user: "root" })
      .catch((error: Error) => error.message);
    expect(asRoot).toEqual(
      uid === "0\n" ? expect.objectContaining({ stdout: "0\n" }) : expect.stringContaining('"root"'),
    );
  });
});

describe("an image without bash", () => {
  it("gets its commands run by its own shell", async () => {
    await using other = await openServed({ mode: "danger-full-access" });
    const plain = await Sandbox.create({ ...other.e2b[0], validateApiKey: false });
    const own = await other.client.getSandbox(plain.sandboxId);
    expect((await own.exec(["mv", "/bin/bash", "/bin/not-bash"])).exitCode).toBe(0);
    expect((await plain.commands.run("echo $0 works")).stdout).toBe("/bin/sh works\n");
    await plain.kill();
  });
});

describe("a terminal", () => {
  it("shows what is typed, knows its size, and is resized", async () => {
    let seen = "";
    const decoder = new TextDecoder();
    const terminal = await sandbox.pty.create({
      ...{ cols: 80, rows: 24 },
      onData: (bytes) => {
        seen += decoder.decode(bytes, { stream: true });
      },
    });
    const type = async (text: string) =>
      await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode(text));
    await type("stty size\n");
    await expect.poll(() => seen).toContain("24 80");
    await sandbox.pty.resize(terminal.pid, { cols: 132, rows: 50 });
    await type("stty size; echo $TERM; pwd\n");
    await expect.poll(() => seen).toContain("50 132");
    await expect.poll(() => seen).toContain("xterm-256color");
    await expect.poll(() => seen).toContain("/home/user");
    await terminal.disconnect();
    let later = "";
    const again = await sandbox.pty.connect(terminal.pid, {
      onData: (bytes) => {
        later += new TextDecoder().decode(bytes);
      },
    });
    await type("echo la''ter; exit 6\n");
    await expect(again.wait()).rejects.toMatchObject({ exitCode: 6 });
    expect(later).toContain("later");
  });

  it("is killed", async () => {
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => undefined });
    expect(await sandbox.pty.kill(terminal.pid)).toBe(true);
    await expect(terminal.wait()).rejects.toBeInstanceOf(CommandExitError);
    expect(await sandbox.pty.kill(terminal.pid)).toBe(false);
  });
});
