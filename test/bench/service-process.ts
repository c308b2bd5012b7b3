import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Inspector, inspectorLine } from "../support/inspector.js";

export const brig = fileURLToPath(new URL("./cli/main.js", import.meta.resolve("brigbox")));

export interface Service extends AsyncDisposable {
  address: { url: string; token: string };
  /** The bytes that it holds, once all garbage is collected. */
  heldBytes(): Promise<number>;
}

/** `brig serve` as a program of its own. */
export async function startService(
  flags: readonly string[],
  { runtime, signal }: { runtime: string | undefined; signal: AbortSignal },
): Promise<Service> {
  const args = ["--inspect=127.0.0.1:0", brig, "serve", "--listen", "127.0.0.1:0", ...flags];
  if (runtime !== undefined) args.push("--runtime", runtime);
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const exited = once(child, "exit");
  const output = createInterface({ input: child.stdout, signal });
  const errors = createInterface({ input: child.stderr, signal });
  const [url, token, debugged] = await Promise.all([
    found(output, /^url = "(.*)"$/),
    found(output, /^token = "(.*)"$/),
    found(errors, inspectorLine),
  ]);
  errors.on("line", (line) => {
    if (!/^(?:Debugger |For help, see)/.test(line)) process.stderr.write(`${line}\n`);
  });
  return {
    address: { url, token },
    async heldBytes() {
      // Only while it is asked, since a process that is inspected does more.
      const inspector = await Inspector.connect(debugged);
      const bytes = await inspector.heldBytes();
      inspector.close();
      return bytes;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

async function found(lines: Interface, pattern: RegExp): Promise<string> {
  return await new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      const match = pattern.exec(line);
      if (match !== null) resolve(match[1] ?? "");
    });
    lines.once("close", () => reject(new Error(`the service ended without a line like ${pattern}`)));
  });
}
