import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { packageRoot } from "../../src/package-root.js";

const library = pathToFileURL(join(packageRoot, "dist/index.js")).href;

/** A program that opens a sandbox and then does something. */
function program(rest: string) {
  const source = `
    import { Sandbox } from ${JSON.stringify(library)};
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
