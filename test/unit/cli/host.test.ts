import { closeSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { type HostProcess, openHost } from "../../../src/cli/host.js";
import { NotedProcess } from "../../support/noted-process.js";

function open() {
  const noted = new NotedProcess();
  return { noted, host: openHost(noted as unknown as HostProcess) };
}

describe("openHost", () => {
  it("hands out the process as a context", () => {
    const { noted, host } = open();
    expect(host).toMatchObject({
      cwd: "/start",
      stdin: noted.stdin,
      stdout: noted.stdout,
      stderr: noted.stderr,
    });
    expect(host.environment.home).toBe("/home/user");
    expect(host.interruption()).toBeNull();
  });

  it("reads what Node takes for empty: a directory, which cannot be read", async () => {
    const noted = new NotedProcess();
    const fd = openSync(tmpdir(), "r");
    onTestFinished(() => closeSync(fd));
    Object.assign(noted.stdin, { fd });
    noted.stdin.end();
    const { stdin } = openHost(noted as unknown as HostProcess);
    await expect(text(stdin)).rejects.toMatchObject({ code: "EISDIR" });
  });

  it("reads a file as Node does, and gives the same stream each time", () => {
    const noted = new NotedProcess();
    const fd = openSync(fileURLToPath(import.meta.url), "r");
    onTestFinished(() => closeSync(fd));
    Object.assign(noted.stdin, { fd });
    const host = openHost(noted as unknown as HostProcess);
    expect(host.stdin).toBe(noted.stdin);
    expect(host.stdin).toBe(host.stdin);
  });

  it("says that the current directory is gone only to who asks for it", () => {
    const noted = new NotedProcess();
    noted.cwd = () => {
      throw Object.assign(new Error("ENOENT: no such file or directory, uv_cwd"), { code: "ENOENT" });
    };
    const host = openHost(noted as unknown as HostProcess);
    expect(host.environment.brigHome).toBe("/home/user/.brig");
    const gone = {
      code: "usage.invalid",
      message: "the current directory is gone: it was removed or renamed",
    };
    expect(() => host.cwd).toThrow(expect.objectContaining(gone));
    Object.assign(noted.env, { BRIG_HOME: "relative" });
    const relative = openHost(noted as unknown as HostProcess);
    expect(() => relative.environment).toThrow(expect.objectContaining(gone));
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGQUIT", 131],
    ["SIGHUP", 129],
  ])("aborts on %s, to exit with %d", (signal, exitStatus) => {
    const { noted, host } = open();
    noted.emit(signal);
    expect(host.signal.reason).toMatchObject({ code: "aborted", message: `interrupted by ${signal}` });
    expect(host.interruption()).toEqual({ exitStatus, isQuiet: false });
    expect(noted.exits).toEqual([]);
  });

  it("exits at once on the second signal", () => {
    const { noted, host } = open();
    noted.emit("SIGTERM");
    noted.emit("SIGINT");
    expect(noted.exits).toEqual([130]);
    expect(host.interruption()?.exitStatus).toBe(143);
  });

  it.each(["SIGINT", "SIGTERM"])(
    "lets a command end its work on the first %s, and aborts on the second",
    (signal) => {
      const { noted, host } = open();
      const drained: unknown[] = [];
      host.drainFirst((interruption) => drained.push(interruption));
      noted.emit(signal);
      expect(drained).toEqual([{ exitStatus: signal === "SIGINT" ? 130 : 143, isQuiet: false }]);
      expect(host.signal.aborted).toBe(false);
      expect(host.interruption()).toBeNull();
      noted.emit("SIGINT");
      expect(host.signal.aborted).toBe(true);
      expect(noted.exits).toEqual([]);
      noted.emit("SIGINT");
      expect(noted.exits).toEqual([130]);
    },
  );

  it.each(["SIGQUIT", "SIGHUP"])("waits for no work on %s", (signal) => {
    const { noted, host } = open();
    host.drainFirst(() => undefined);
    noted.emit(signal);
    expect(host.signal.aborted).toBe(true);
  });

  it("aborts on the first signal again once the command's work has ended", () => {
    const { noted, host } = open();
    const drained: unknown[] = [];
    host.drainFirst((interruption) => drained.push(interruption))[Symbol.dispose]();
    noted.emit("SIGINT");
    expect(drained).toEqual([]);
    expect(host.signal.aborted).toBe(true);
  });

  it("takes a terminal that is closed for one signal, however often that is told", () => {
    const { noted, host } = open();
    noted.emit("SIGHUP");
    noted.emit("SIGHUP");
    expect(noted.exits).toEqual([]);
    expect(host.interruption()?.exitStatus).toBe(129);
  });

  it("ends quietly when the reader of stdout went away", () => {
    const { noted, host } = open();
    noted.stdout.emit("error", Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
    expect(host.signal.aborted).toBe(true);
    expect(host.interruption()).toEqual({ exitStatus: 141, isQuiet: true });
  });

  it("ends as after SIGHUP when its terminal is found closed before that signal comes", () => {
    const { noted, host } = open();
    const gone = Object.assign(new Error("write EIO"), { code: "EIO" });
    Object.assign(noted.stdout, { isTTY: true }).emit("error", gone);
    expect(host.interruption()).toEqual({ exitStatus: 129, isQuiet: true });
    const other = open();
    other.noted.stdout.emit("error", gone);
    expect(other.host.interruption()).toEqual({ exitStatus: 1, isQuiet: false });
  });

  it("says so and fails when stdout takes nothing any more, as on a full disk", () => {
    const { noted, host } = open();
    const full = new Error("ENOSPC: no space left on device, write");
    noted.stdout.emit("error", Object.assign(full, { code: "ENOSPC" }));
    expect(host.interruption()).toEqual({ exitStatus: 1, isQuiet: false });
    expect(host.signal.reason).toMatchObject({
      message: "cannot write to standard output: ENOSPC: no space left on device, write",
    });
  });

  it("goes on when the reader of stderr went away", () => {
    const { noted, host } = open();
    noted.stderr.emit("error", new Error("write EPIPE"));
    expect(host.signal.aborted).toBe(false);
  });

  it("keeps the exit status that was set last", () => {
    const { host } = open();
    expect(host.exitStatus()).toBe(0);
    host.setExitStatus(7);
    expect(host.exitStatus()).toBe(7);
  });
});
