import { describe, expect, it } from "vitest";
import { findDenial } from "../../../../src/sandbox/policy/sandbox-denial.js";

const ended = { exitCode: 1, signal: null, timedOut: false };
const closed = { hasNetwork: false };

describe("a sandbox's denial", () => {
  it.each([
    ["touch: cannot touch '/etc/x': Read-only file system", "EROFS"],
    ["OSError: [Errno 30] Read-only file system: '/x'", "EROFS"],
    ["Error: EROFS: read-only file system, open '/x'", "EROFS"],
    ["chown: changing ownership of 'x': Operation not permitted", "EPERM"],
    ["bash: /root/x: Permission denied", "EACCES"],
    ["Failed to write file /x", "EPERM"],
    ["bash: connect: Network is unreachable", "ENETUNREACH"],
    ["connect ENETUNREACH 1.1.1.1:443", "ENETUNREACH"],
    ["curl: (6) Could not resolve host: example.org", "EAI_AGAIN"],
    ["ssh: Could not resolve hostname x: Temporary failure in name resolution", "EAI_AGAIN"],
    ["Error: getaddrinfo EAI_AGAIN registry.npmjs.org", "EAI_AGAIN"],
    ["dial tcp: lookup proxy.golang.org: no such host", "EAI_AGAIN"],
    ["error: failed to lookup address information: Name or service not known", "EAI_AGAIN"],
  ])("is told by %j", (line, errno) => {
    expect(findDenial({ ...ended, output: `before\n${line}\nafter\n` }, closed)).toEqual({
      errno,
      evidence: line,
      toldBy: "command",
    });
  });

  it("is told by the signal of a filtered system call, or the exit code of a shell that saw it", () => {
    expect(findDenial({ ...ended, signal: "SIGSYS", output: "" }, closed)).toEqual({
      errno: "SIGSYS",
      evidence: "",
      toldBy: "command",
    });
    expect(findDenial({ ...ended, exitCode: 159, output: "" }, closed)?.errno).toBe("SIGSYS");
  });

  it("is none of a command that succeeded, ran out of time, or failed by itself", () => {
    const output = "Read-only file system";
    expect(findDenial({ ...ended, exitCode: 0, output }, closed)).toBeNull();
    expect(findDenial({ ...ended, exitCode: 124, timedOut: true, output }, closed)).toBeNull();
    for (const exitCode of [1, 2, 126, 127])
      expect(findDenial({ ...ended, exitCode, output: "no such thing" }, closed)).toBeNull();
  });

  it("is none of the network's where the sandbox has one", () => {
    const output = "Network is unreachable\n";
    expect(findDenial({ ...ended, output }, { hasNetwork: true })).toBeNull();
  });

  it("shows at most a line's beginning, and is found in a flood", () => {
    const line = `Permission denied ${"x".repeat(1000)}`;
    const output = `${"lookup ".repeat(100_000)}\n${line}`;
    expect(findDenial({ ...ended, output }, closed)?.evidence).toBe(line.slice(0, 300));
  });
});
