import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ToolSandbox, ToolSpawnOptions } from "../../src/tools/tool-sandbox.js";

export type OpenSandbox = () => Promise<ToolSandbox & { close(): Promise<unknown> }>;

/** What the tools rely on. Every sandbox they are given passes this. */
export function describeToolSandbox(name: string, open: OpenSandbox): void {
  describe(`${name} as the tools need it`, () => {
    let sandbox: Awaited<ReturnType<OpenSandbox>>;

    beforeAll(async () => {
      sandbox = await open();
    });

    afterAll(async () => {
      await sandbox.close();
    });

    async function run(script: string, options: ToolSpawnOptions = {}) {
      const shell = await sandbox.spawn(["/bin/sh", "-c", script], {
        cwd: "/tmp",
        stdin: "closed",
        ...options,
      });
      const [stdout, stderr, exit] = await Promise.all([
        text(shell.stdout),
        shell.stderr === null ? null : text(shell.stderr),
        shell.exit,
      ]);
      return { stdout, stderr, exit };
    }

    it("keeps stdout and stderr apart and tells the exit code", async () => {
      const { stdout, stderr, exit } = await run("echo out; echo err >&2; exit 3");
      expect({ stdout, stderr }).toEqual({ stdout: "out\n", stderr: "err\n" });
      expect(exit).toMatchObject({ exitCode: 3, signal: null, timedOut: false, startFailure: null });
    });

    it("merges both streams in their exact order on request", async () => {
      const script = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
      const { stdout, stderr } = await run(script, { mergeOutput: true });
      expect(stdout).toBe("o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
      expect(stderr).toBeNull();
    });

    it("gives a closed stdin its end at once", async () => {
      expect((await run("cat; echo done")).stdout).toBe("done\n");
    });

    it("sets variables and the working directory", async () => {
      const { stdout } = await run('echo "$GREETING"; pwd', { env: { GREETING: "hi" }, cwd: "/usr" });
      expect(stdout).toBe("hi\n/usr\n");
    });

    it("hands over every byte of a large output", async () => {
      const shell = await sandbox.spawn(["/bin/sh", "-c", "head -c 3000000 /dev/zero"], { stdin: "closed" });
      const [bytes] = await Promise.all([buffer(shell.stdout), shell.exit, drained(shell.stderr)]);
      expect(bytes.length).toBe(3_000_000);
    });

    it("keeps what was printed before a timeout", async () => {
      let printed = "";
      // A slow machine may need longer to get as far as printing.
      for (let timeoutMs = 300; printed === ""; timeoutMs *= 2) {
        const { stdout, exit } = await run("echo early; sleep 60", { timeoutMs });
        expect(exit).toMatchObject({ exitCode: 124, timedOut: true });
        printed = stdout;
      }
      expect(printed).toBe("early\n");
    });

    it("names the signal that ended a command", async () => {
      const { exit } = await run("kill -KILL $$");
      expect(exit).toMatchObject({ exitCode: 137, signal: "SIGKILL", timedOut: false });
    });

    it("does not wait for a child that holds the pipe open, and loses nothing that was printed", async () => {
      const { stdout } = await run("echo kept; sleep 60 & echo $!");
      const [kept, child] = stdout.trim().split("\n");
      expect(kept).toBe("kept");
      expect((await run(`kill -9 ${child}`)).exit.exitCode).toBe(0);
    });

    it("ends what a command leaves running where nothing may outlive it, and says so", async () => {
      const left = await run("sleep 30 >/dev/null 2>&1 & echo $!", { endsTree: true });
      expect(left.exit).toMatchObject({ exitCode: 0, treeEnded: true });
      // Dead is also what nobody has asked for its status yet.
      const isRunning = `grep -q '^State:.[^ZX]' /proc/${left.stdout.trim()}/status`;
      await expect.poll(async () => (await run(isRunning)).exit.exitCode).not.toBe(0);
      expect((await run("echo alone", { endsTree: true })).exit.treeEnded).toBe(false);
    });

    it.each([
      ["a program that does not exist", ["/proc/nonexistent/program"], 127, "ENOENT"],
      ["a file that is no program", ["/etc/passwd"], 126, "EACCES"],
    ])("tells why %s could not be started", async (_, argv, exitCode, errno) => {
      const started = await sandbox.spawn(argv, { stdin: "closed" });
      started.stdout.resume();
      started.stderr?.resume();
      const exit = await started.exit;
      expect(exit.exitCode).toBe(exitCode);
      expect(exit.startFailure).toEqual({
        stage: "exec",
        errno,
        message: expect.stringContaining(`${argv[0]}: `),
      });
    });

    it("answers with exec.bad-cwd for a working directory that does not exist", async () => {
      const started = await sandbox.spawn(["/bin/sh", "-c", "pwd"], {
        cwd: "/proc/nonexistent",
        stdin: "closed",
      });
      started.stdout.on("error", () => undefined);
      started.stderr?.on("error", () => undefined);
      await expect(started.exit).rejects.toMatchObject({
        code: "exec.bad-cwd",
        errno: "ENOENT",
        message: expect.stringMatching(/\/proc\/nonexistent .*: ENOENT$/),
      });
    });

    it("refuses NUL in an argument with exec.invalid", async () => {
      await expect(
        Promise.resolve().then(() => sandbox.spawn(["echo", "a\0b"], { stdin: "closed" })),
      ).rejects.toMatchObject({ code: "exec.invalid" });
    });

    it("kills the command when the signal is aborted", async () => {
      const stop = new AbortController();
      const started = await sandbox.spawn(["/bin/sh", "-c", "echo up; sleep 600"], {
        signal: stop.signal,
        stdin: "closed",
      });
      started.stderr?.resume();
      started.stdout.once("data", () => {
        stop.abort();
      });
      await started.exit.catch((error: unknown) => error);
    });

    it("runs a terminal of the given size that takes input", async () => {
      const shell = await sandbox.spawn(["/bin/sh", "-c", "stty size; read line; echo got:$line"], {
        cwd: "/tmp",
        pty: { rows: 24, cols: 80 },
      });
      shell.stdin?.write("hello\n");
      const [output] = await Promise.all([text(shell.stdout), shell.exit]);
      expect(output).toContain("24 80");
      expect(output).toContain("got:hello");
    });

    describe("its files", () => {
      const directory = `/tmp/brig-contract-${randomUUID()}`;

      beforeAll(async () => {
        await run(
          `rm -rf ${directory}; mkdir -p ${directory}/sub; cd ${directory}; printf 0123456789 > digits; : > empty
           mkfifo fifo; ln -s digits link; ln -s nowhere dangling; mkdir "$(printf 'bytes\\377')"; : > "$(printf 'bytes\\377')/inner"`,
        );
      });

      afterAll(async () => {
        await run(`rm -rf ${directory}`);
      });

      async function entriesOf(path: string | Uint8Array) {
        const entries: string[] = [];
        await sandbox.files.list(path, {
          onEntries(some) {
            for (const { nameBytes, type } of some)
              entries.push(`${Buffer.from(nameBytes).toString("latin1")} ${type}`);
          },
        });
        return entries.sort();
      }

      it.each([
        ["digits", 0, 4, "0123"],
        ["digits", 8, 4, "89"],
        ["digits", 10, 4, ""],
        ["digits", 99, 4, ""],
        ["link", 3, 2, "34"],
        ["empty", 0, 4, ""],
      ])("reads of %s, from byte %i, at most %i bytes", async (name, offsetBytes, lengthBytes, expected) => {
        const bytes = await sandbox.files.read(`${directory}/${name}`, { offsetBytes, lengthBytes });
        expect(Buffer.from(bytes).toString()).toBe(expected);
      });

      it.each([
        ["fifo", "file.not-regular", undefined],
        ["sub", "file.is-directory", "EISDIR"],
        ["missing", "file.not-found", "ENOENT"],
        ["dangling", "file.not-found", "ENOENT"],
        ["digits/below", "file.not-directory", "ENOTDIR"],
      ])("refuses to read %s with %s", async (name, code, errno) => {
        const reading = sandbox.files.read(`${directory}/${name}`, { offsetBytes: 0, lengthBytes: 1 });
        await expect(reading).rejects.toMatchObject({ code, errno });
      });

      it.each([
        ["digits", "file", 10],
        ["link", "file", 10],
        ["sub", "directory", expect.any(Number)],
        ["fifo", "fifo", 0],
      ])("tells what %s is, or leads to", async (name, type, sizeBytes) => {
        expect(await sandbox.files.stat(`${directory}/${name}`, {})).toMatchObject({ type, sizeBytes });
      });

      it("lists names as bytes, with their types", async () => {
        expect(await entriesOf(directory)).toEqual([
          "bytes\xff directory",
          "dangling symlink",
          "digits file",
          "empty file",
          "fifo fifo",
          "link symlink",
          "sub directory",
        ]);
      });

      it("lists a directory whose name is not UTF-8", async () => {
        const name = Buffer.concat([Buffer.from(`${directory}/bytes`), Buffer.of(0xff)]);
        expect(await entriesOf(name)).toEqual(["inner file"]);
      });

      it.each([
        ["missing", "file.not-found"],
        ["digits", "file.not-directory"],
      ])("refuses to list %s with %s", async (name, code) => {
        await expect(entriesOf(`${directory}/${name}`)).rejects.toMatchObject({ code });
      });

      it.each(["relative", "/nul\0byte"])("refuses the path %j", async (path) => {
        const reading = Promise.resolve().then(() =>
          sandbox.files.read(path, { offsetBytes: 0, lengthBytes: 1 }),
        );
        await expect(reading).rejects.toMatchObject({ code: "file.not-found" });
      });
    });
  });
}

async function drained(stream: Readable | null): Promise<void> {
  if (stream !== null) await text(stream);
}
