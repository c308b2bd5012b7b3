import { describe, expect } from "vitest";
import { ATTEMPTS_PROGRAM, parseOutcomes } from "../../../src/sandbox/attack/weak-twin.js";
import { sandboxTest } from "../../support/sandbox.js";

/**
 * Runs the attempts below a process that adopts the orphans which they leave behind. Prints what they print, and then how many orphans
 * there were. With "end", ends the attempt that starts many processes as its alarm would, as soon as it has started some.
 */
const SUPERVISOR = `
import ctypes, os, signal, subprocess, sys
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()
    except OSError:
        return []

attempts = subprocess.Popen(["${ATTEMPTS_PROGRAM}", "all", "manyProcesses=600"], stdout=subprocess.PIPE, text=True)
while sys.argv[1] == "end":
    many = [child for child in children(attempts.pid) if len(children(child)) >= 20]
    if many:
        os.kill(int(many[0]), signal.SIGALRM)
        break
print(attempts.communicate()[0])
left = 0
while True:
    try:
        os.wait()
        left += 1
    except ChildProcessError:
        break
print(f"left {left}")
`;

describe("the attempt to start many processes", () => {
  sandboxTest("waits for each of them, so that none is left to the engine", async ({ sandbox }) => {
    const { stdout } = await sandbox.exec(["python3", "-c", SUPERVISOR, "wait"], { timeoutMs: 100_000 });
    expect(parseOutcomes(stdout)["processes-without-limit"]).toBe("done");
    expect(stdout).toMatch(/^left 0$/m);
  });

  sandboxTest("takes them with it when it is ended by its alarm", async ({ sandbox }) => {
    const { stdout } = await sandbox.exec(["python3", "-c", SUPERVISOR, "end"], { timeoutMs: 100_000 });
    expect(parseOutcomes(stdout)["processes-without-limit"]).toBe("ended by signal 14");
    expect(stdout).toMatch(/^left 0$/m);
  });
});
