import { spawn } from "node:child_process";

/**
 * How a program ended: "passed", "failed", or "timed-out" after so many milliseconds, for a fault may make a loop endless. Then all that it has
 * started is killed.
 */
export function endInTime([program, ...argv], { cwd, timeoutMs, signal, env = process.env, input }) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, argv, { cwd, env, detached: true, stdio: ["pipe", "ignore", "ignore"] });
    let outcome = null;
    const kill = (reason) => {
      outcome ??= reason;
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended meanwhile.
      }
    };
    const timer = setTimeout(() => kill("timed-out"), timeoutMs);
    const onAbort = () => kill("interrupted");
    signal.addEventListener("abort", onAbort, { once: true });
    child.once("error", reject);
    child.once("close", (status) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(outcome ?? (status === 0 ? "passed" : "failed"));
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
  });
}
