import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EgressAttempt } from "../../../../src/sandbox/egress/attempt.js";
import { createToolRegistry, type ToolRegistry } from "../../../../src/tools/registry.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import { openTestSandbox, type TestSandbox, temporaryDirectory } from "../../../support/sandbox.js";

const SECRET = "sk-live-7f3a9c0d51e64b2288a1";
const STARS = "*".repeat(SECRET.length);
const [FIRST, SECOND] = [SECRET.slice(0, 13), SECRET.slice(13)];
const attempts: EgressAttempt[] = [];
const late: string[] = [];
let opened: TestSandbox;
let tools: ToolRegistry;

beforeAll(async () => {
  opened = await openTestSandbox({
    network: "allowlist:api.example.com:443",
    workspaceKind: "overlay",
    egress: { secrets: { API_KEY: { hosts: ["api.example.com"], value: SECRET } } },
    onEgress: (attempt) => attempts.push(attempt),
    onLateOutput: (data) => void late.push(data.toString()),
  });
  await opened.sandbox.files.write(join(opened.workspace, "found.env"), `# keys\nKEY=${SECRET}\n`);
  tools = createToolRegistry(opened.sandbox, { cwd: opened.workspace });
}, 120_000);

afterAll(async () => {
  await tools?.close();
  await opened?.[Symbol.asyncDispose]();
});

const bash = (script: string) => ["bash", "-c", script];

describe("a secret that a command prints is masked", () => {
  it("in its output, which is as long as before", async () => {
    const { stdout } = await opened.sandbox.exec(["cat", "found.env"]);
    expect(stdout).toBe(`# keys\nKEY=${STARS}\n`);
  });

  it("when it is written in pieces with pauses", async () => {
    const seen: string[] = [];
    const { stdout } = await opened.sandbox.exec(
      bash(`printf %s 'key ${FIRST}'; sleep 0.4; printf %s ${SECOND}; echo .`),
      { onStdout: (data) => void seen.push(data.toString()) },
    );
    expect(stdout).toBe(`key ${STARS}.\n`);
    expect(seen[0]).toBe("key ");
    expect(seen.join("")).toBe(stdout);
  });

  it("when something else is printed to the other stream meanwhile", async () => {
    const { stdout, output } = await opened.sandbox.exec(
      bash(`printf %s ${FIRST}; sleep 0.2; echo warning >&2; sleep 0.2; printf %s ${SECOND}`),
    );
    expect(stdout).toBe(STARS);
    expect(output).not.toContain(FIRST);
  });

  it("and the order of both streams stays where a secret could only begin", async () => {
    const { output } = await opened.sandbox.exec(
      bash("printf s; sleep 0.02; printf e >&2; sleep 0.02; printf t"),
    );
    expect(output).toBe("set");
  });

  it("in bytes, too", async () => {
    const { stdout } = await opened.sandbox.exec(["cat", "found.env"], { encoding: "buffer" });
    expect(stdout.toString()).toBe(`# keys\nKEY=${STARS}\n`);
  });

  it("on a terminal, where a prompt appears at once", async () => {
    const program = await opened.sandbox.spawn(bash(`printf 'Key: '; read -r line; echo "${SECRET} $line"`), {
      pty: { rows: 24, cols: 80 },
    });
    let text = "";
    program.stdout.on("data", (data: Buffer) => {
      text += data;
      if (text === "Key: ") program.stdin?.write("s\r");
    });
    expect((await program.exit).exitCode).toBe(0);
    expect(text).toBe(`Key: s\r\n${STARS} s\r\n`);
  });

  it("in what a process prints after its call has ended", async () => {
    await opened.sandbox.exec(bash(`(sleep 1; echo late ${SECRET}) & echo now`));
    while (late.join("") === "") await new Promise((resolve) => setTimeout(resolve, 50));
    expect(late.join("")).toBe(`late ${STARS}\n`);
  });

  it("in the record of what it tried to reach, and in what its output says of that", async () => {
    const { stderr } = await opened.sandbox.exec(bash(`curl -s http://other.example/${SECRET} -o /dev/null`));
    expect(attempts.at(-1)).toMatchObject({ host: "other.example", path: `/${STARS}` });
    expect(stderr).not.toContain(SECRET);
    await opened.sandbox.exec(bash(`curl -s http://${SECRET}.example/ -o /dev/null`));
    expect(JSON.stringify(attempts)).not.toContain(SECRET);
    expect(attempts.at(-1)?.host).toBe(`${STARS}.example`);
  });
});

describe("a secret that a file has", () => {
  it.each([
    ["read_file", () => ({ file_path: join(opened.workspace, "found.env") })],
    ["grep_files", () => ({ pattern: "KEY" })],
    ["shell_command", () => ({ command: "base64 -w0 found.env; cat found.env" })],
    ["exec", () => ({ command: ["cat", "found.env"] })],
  ])("is masked in the result of %s", async (name, args) => {
    const output = await tools.get(name as string).execute(args());
    expect(output.success).toBe(true);
    const text = JSON.stringify(output);
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain(Buffer.from(`KEY=${SECRET}`).toString("base64").slice(6, -2));
    if (name !== "grep_files") expect(text).toContain("KEY=***");
  });

  it("is masked in names that list_dir shows", async () => {
    await opened.sandbox.files.mkdir(join(opened.workspace, "names"));
    await opened.sandbox.files.write(join(opened.workspace, "names", SECRET), "");
    const { content } = await tools.get("list_dir").execute({ dir_path: join(opened.workspace, "names") });
    expect(content).toContain(STARS);
    expect(content).not.toContain(SECRET);
  });

  it("is masked where a long line was cut in the middle of it", async () => {
    const file = join(opened.workspace, "long");
    await opened.sandbox.files.write(file, `${"x".repeat(480)}${SECRET}${"y".repeat(600)}\n`);
    const { content } = await tools.get("read_file").execute({ file_path: file });
    expect(content).toContain("x***");
    expect(content).not.toContain(SECRET.slice(0, 15));
  });

  it("stays in the file when a patch changes it, and is masked in the patch that is shown", async () => {
    const activities: ToolActivity[] = [];
    const patch = "*** Begin Patch\n*** Update File: found.env\n@@\n-# keys\n+# the keys\n*** End Patch";
    const { success } = await tools
      .get("apply_patch")
      .execute({ input: patch }, { onActivity: (activity) => void activities.push(activity) });
    expect(success).toBe(true);
    const file = await opened.sandbox.files.read(join(opened.workspace, "found.env"));
    expect(file.toString()).toBe(`# the keys\nKEY=${SECRET}\n`);
    expect(JSON.stringify(activities)).toContain(`KEY=${STARS}`);
    expect(JSON.stringify(activities)).not.toContain(SECRET);
  });

  it("is masked in the diff, and applied as it is", async () => {
    const diff = await opened.sandbox.diff({ paths: ["found.env"] });
    expect(diff.changes[0]?.patch).toContain(`+KEY=${STARS}\n`);
    await opened.sandbox.apply({ paths: ["found.env"] });
    expect(readFileSync(join(opened.workspace, "found.env"), "utf8")).toContain(SECRET);
  });

  it("is masked in what a fork has changed", async () => {
    await using fork = await opened.sandbox.fork();
    await fork.exec(bash(`echo "AGAIN=${SECRET}" >again.env`));
    const { files, text } = await fork.changesSinceFork();
    expect(files).toEqual([{ path: "again.env", kind: "add" }]);
    expect(text).toContain(`+AGAIN=${STARS}\n`);
    expect(text).not.toContain(SECRET);
  });
});

it("a sandbox without secrets shows everything", async () => {
  await using folder = await temporaryDirectory();
  mkdirSync(join(folder.path, "work"));
  writeFileSync(join(folder.path, "work", "file"), SECRET);
  await using plain = await openTestSandbox({ workspace: join(folder.path, "work") });
  expect(plain.sandbox.maskSecrets).toBeNull();
  expect((await plain.sandbox.exec(["cat", "file"])).stdout).toBe(SECRET);
});
