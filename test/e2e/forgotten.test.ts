import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { packageRoot } from "../../src/package-root.js";

const library = pathToFileURL(join(packageRoot, "dist/index.js")).href;

/** A program that opens a sandbox and then does something. */
function program(rest: string) {
  const source = `
    import { createPool, Sandbox } from ${JSON.stringify(library)};
    const sandbox = await Sandbox.create({ workspaceKind: "none", leaseSeconds: 10 });
    await sandbox.exec(["true"]);
    ${rest}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, stderr: child.stderr };
}

describe("a program that forgets to close its sandbox", () => {
  it("is told what keeps it running", async () => {
    const { stderr } = program("");
    let said = "";
    for await (const chunk of stderr) {
      said += chunk;
      if (said.includes("sandbox.close()")) break;
    }
    expect(said).toMatch(/nothing but the open sandbox [0-9a-f-]{36} keeps this program running/);
  });

  it.for([
    ["a pool of which nothing is used", ""],
    ["a pool of which a sandbox is used", "const taken = await pool.acquire(); await taken.exec(['true']);"],
  ])("is told once of %s", async ([, rest]) => {
    const { stderr } = program(`await sandbox.close();
    const pool = createPool({ size: 2, leaseSeconds: 10 });
    await pool.filled();
    ${rest}`);
    let said = "";
    stderr.on("data", (chunk) => {
      said += chunk;
    });
    await vi.waitUntil(() => said.includes("pool.close()"), { timeout: 30_000 });
    await setTimeout(500);
    expect(said.match(/nothing but the open pool of sandboxes keeps this program running/g)).toHaveLength(1);
  });

  it.for([
    [
      "waits for something else",
      "await new Promise((resolve) => setTimeout(resolve, 7000)); await sandbox.close();",
    ],
    ["has a port open", "await sandbox.forward(80); setTimeout(() => sandbox.close(), 7000).unref();"],
  ])("is told nothing while it %s", async ([, rest]) => {
    const { child, stderr } = program(rest as string);
    const [said] = await Promise.all([text(stderr), once(child, "exit")]);
    expect(said).toBe("");
    expect(child.exitCode).toBe(0);
  });
});
