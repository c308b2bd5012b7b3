import { chmod, chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig } from "../support/cli.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

let workspace: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  workspace = directory.path;
});

describe.skipIf(process.getuid?.() !== 0)("root in a workspace of somebody else [needs root]", () => {
  const told = /^brig: commands cannot write to "[^"]+": it belongs to 1234:1235, and they run as 0:0$/gm;
  const count = (text: string) => text.match(told)?.length ?? 0;
  beforeEach(async () => {
    await chown(workspace, 1234, 1235);
    await chmod(workspace, 0o755);
  });

  it("is told so once, by exec as text and in its object, and can run commands as the owner", async () => {
    const plain = await brig(["exec", "--", "touch", "x"], { cwd: workspace });
    expect(plain.exitCode).toBe(1);
    expect(count(plain.stderr)).toBe(1);
    expect(plain.stderr).toContain("hint: run them as its owner: --user 1234:1235");
    const json = await brig(["exec", "--json", "--", "true"], { cwd: workspace });
    expect(JSON.parse(json.stdout)).toMatchObject({
      warnings: [{ code: "workspace.invalid", hint: expect.stringContaining("--user 1234:1235") }],
    });
    const owner = await brig(["exec", "--user", "1234:1235", "--", "sh", "-c", "id -u; touch x"], {
      cwd: workspace,
    });
    expect({ ...owner }).toMatchObject({ exitCode: 0, stdout: "1234\n", stderr: "" });
  });

  it("is told so by run, by wrap and by shell", async () => {
    await writeFile(join(workspace, "script.json"), JSON.stringify({ steps: [{ text: "done" }] }));
    const run = await brig(["run", "--script", join(workspace, "script.json"), "hello"], { cwd: workspace });
    expect({ stderr: run.stderr, told: count(run.stderr) }).toMatchObject({ told: 1 });
    const wrap = await brig(["wrap", "--", "true"], { cwd: workspace });
    expect({ stderr: wrap.stderr, told: count(wrap.stderr) }).toMatchObject({ told: 1 });
    const terminal = await Terminal.open(["shell"], { cwd: workspace });
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    await terminal.waitFor(/[#$] $/);
    terminal.type("exit\r");
    await terminal.end();
    expect(terminal.shown).toContain("it belongs to 1234:1235");
  });
});
