import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type BrigOptions, brig, containersOf } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { testRuntime } from "../support/runtime-differences.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];

let folder: TemporaryDirectory;
let home = "";
let workspace = "";
let scripts = 0;

beforeAll(async () => {
  folder = await temporaryDirectory();
  home = join(folder.path, "home");
  await mkdir(home);
});

afterAll(() => folder[Symbol.asyncDispose]());

beforeEach(async () => {
  workspace = join(folder.path, `work-${scripts}`);
  await mkdir(workspace);
});

/** Nothing of this machine's own configuration or keys is used. */
const cleanEnvironment = () => ({
  BRIG_HOME: home,
  CODEX_HOME: home,
  OPENAI_API_KEY: "",
  OPENAI_BASE_URL: "",
});

function run(args: string[], options: BrigOptions = {}) {
  const env = { ...cleanEnvironment(), ...options.env };
  return brig(["run", ...onRuntime, ...args], { cwd: workspace, ...options, env });
}

/** A script that makes the calls, one after the other, and is done. */
async function play(...calls: object[]): Promise<string> {
  const file = join(folder.path, `play-${scripts++}.yaml`);
  const steps = [...calls.map((call) => ({ calls: [call] })), { text: "done" }];
  await writeFile(file, JSON.stringify({ steps }));
  return file;
}

const shell = (script: string, more: object = {}) => ({
  shell: { command: ["bash", "-c", script], ...more },
});
const escalated = { sandbox_permissions: "require_escalated", justification: "May I write to /etc?" };

interface Item {
  type: string;
  item?: {
    type: string;
    command?: string;
    aggregated_output?: string;
    exit_code?: number | null;
    status?: string;
  };
}

/** The commands that ended, or did not start, as `--json` tells. */
function commandsIn(stdout: string) {
  const events = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Item);
  return events.flatMap(({ type, item }) =>
    type === "item.completed" && item?.type === "command_execution"
      ? [{ output: item.aggregated_output, exitCode: item.exit_code, status: item.status }]
      : [],
  );
}

describe("brig run without a terminal", () => {
  const asks = ["-c", "approval_policy={granular={sandbox_approval=true}}"];
  const refuses = ["-c", "approval_policy={granular={sandbox_approval=false}}"];
  const nobody = "approval required by policy, but nobody is there to approve it";
  const blocked =
    "`bash -c 'rm -f -- none'` rejected: rm -f style commands are not permitted. Use a safer approach";
  const told = "approval required by policy, but AskForApproval::Granular.sandbox_approval is false";
  const policies: [name: string, flags: string[], dangerous: string][] = [
    ["untrusted", ["-a", "untrusted"], nobody],
    ["on-failure", ["-a", "on-failure"], nobody],
    ["on-request", ["-a", "on-request"], nobody],
    ["never", ["-a", "never"], blocked],
    ["none that is chosen", [], blocked],
    ["granular that asks", asks, nobody],
    ["granular that refuses", refuses, told],
  ];
  const modes = ["read-only", "workspace-write", "danger-full-access"];
  const table = policies.flatMap(([name, flags, dangerous]) =>
    modes.map((mode) => ({ name, mode, flags: [...flags, "-s", mode], dangerous })),
  );

  it.each(table)(
    "gives the answer of the policy itself: $name in $mode",
    async ({ name, mode, flags, dangerous }) => {
      const file = await play(
        shell("ls"),
        shell("rm -f -- none"),
        shell("sort /dev/null"),
        shell("true", escalated),
      );
      const done = await run([...flags, "--json", "--script", file, "go"]);
      expect(done.exitCode).toBe(0);
      const isFree = mode === "danger-full-access";
      const ran = { output: "", exitCode: 0, status: "completed" };
      const declined = (output: string) => ({ output, exitCode: -1, status: "declined" });
      const isNever = dangerous === blocked;
      expect(commandsIn(done.stdout)).toEqual([
        ran,
        isFree && isNever ? ran : declined(dangerous),
        name === "untrusted" ? declined(nobody) : ran,
        // Elsewhere the call is refused before it is a command.
        ...(name === "on-request" ? [isFree ? ran : declined(nobody)] : []),
      ]);
    },
  );

  it("refuses a policy that is none, and says which was meant", async () => {
    const done = await run(["-a", "on-requst", "--script", await play(), "go"]);
    expect(done.exitCode).toBe(2);
    expect(done.stderr).toContain("did you mean on-request?");
  });

  it("takes the policy of the configuration, and the flag's before it", async () => {
    const env = { BRIG_HOME: join(folder.path, "home-untrusted") };
    await mkdir(env.BRIG_HOME, { recursive: true });
    await writeFile(join(env.BRIG_HOME, "config.toml"), 'approval_policy = "untrusted"\n');
    const file = await play(shell("sort /dev/null"));
    const configured = await run(["--json", "--script", file, "go"], { env });
    expect(commandsIn(configured.stdout)).toMatchObject([{ status: "declined" }]);
    const flagged = await run(["-a", "never", "--json", "--script", file, "go"], { env });
    expect(commandsIn(flagged.stdout)).toMatchObject([{ status: "completed" }]);
  });

  it("starts no second container as long as nothing is approved, and asks for nothing in a pipe", async () => {
    const done = await run(["-a", "on-request", "--script", await play(shell("id", escalated)), "go"]);
    expect(done.stderr).toContain("nobody is there to approve it");
    expect(done.stderr).not.toContain("Answer");
    expect(await sessionRecords(done.stderr, "brig.sandbox")).toHaveLength(1);
    expect(await sessionRecords(done.stderr, "brig.approval")).toEqual([]);
  });
});

async function sessionRecords(shown: string, type: string): Promise<Record<string, unknown>[]> {
  const file = /session file\s+(\/\S+)/.exec(shown)?.[1] ?? "";
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  const records = lines.map((line) => JSON.parse(line) as { type: string; payload: Record<string, unknown> });
  return records.filter((record) => record.type === type).map(({ payload }) => payload);
}

async function onTerminal(args: string[]): Promise<Terminal> {
  const terminal = await Terminal.open(["run", ...onRuntime, ...args], {
    cwd: workspace,
    env: cleanEnvironment(),
  });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  return terminal;
}

const question = /Answer \(Enter is no\): $/;

describe("brig run on a terminal", () => {
  it("asks, runs what is approved in the second container, and leaves the terminal as it was", async () => {
    const file = await play(
      shell("touch /etc/note && echo changed", escalated),
      shell("test -e /etc/note || echo untouched"),
    );
    const terminal = await onTerminal(["-a", "on-request", "--script", file, "go"]);
    await terminal.waitFor(question);
    for (const text of [
      "OUTSIDE the sandbox",
      "  │ touch /etc/note && echo changed",
      `  in      ${workspace}`,
      "  agent   “May I write to /etc?”",
    ])
      expect(terminal.shown).toContain(text);
    terminal.type("y");
    const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
    expect(terminal.shown).toMatch(/Answer \(Enter is no\): yes\r\n/);
    expect(terminal.shown).toContain("changed");
    expect(terminal.shown).toContain("untouched");
    expect(exitStatus).toBe(0);
    expect(settingsAfter).toBe(settingsBefore);
    expect(await sessionRecords(terminal.shown, "brig.sandbox")).toHaveLength(2);
    expect(await sessionRecords(terminal.shown, "brig.approval")).toMatchObject([
      { place: "escalated", justification: "May I write to /etc?" },
      { place: "escalated", answer: "approved" },
    ]);
  });

  it("keeps one container with --keep, and never the one that holds nothing back", async () => {
    const file = await play(shell("id -u", escalated));
    const terminal = await onTerminal(["--keep", "-a", "on-request", "--script", file, "go"]);
    await terminal.waitFor(question);
    terminal.type("y");
    const pid = await terminal.pid();
    expect((await terminal.end()).exitStatus).toBe(0);
    const kept = await containersOf(pid);
    const engine = await testEngine();
    onTestFinished(async () => void (await Promise.all(kept.map((id) => engine.removeContainer(id)))));
    expect(kept).toHaveLength(1);
    const note = `the container ${kept[0]?.slice(0, 12)} keeps running`;
    expect(terminal.screen.history.join("\n").split(note)).toHaveLength(2);
  });

  it("takes Enter for no, and goes on", async () => {
    const terminal = await onTerminal(["-a", "untrusted", "--script", await play(shell("touch made")), "go"]);
    await terminal.waitFor(question);
    terminal.type("\r");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(terminal.shown).toContain("exec command rejected by user");
    await expect(access(join(workspace, "made"))).rejects.toThrow(/ENOENT/);
  });

  it("asks for a retry where the sandbox made a command fail, and says how it failed", async () => {
    const terminal = await onTerminal([
      "-a",
      "on-failure",
      "--script",
      await play(shell("touch /etc/note; ls /etc/note")),
      "go",
    ]);
    await terminal.waitFor(question);
    expect(terminal.shown).toContain("command failed; retry without sandbox?");
    expect(terminal.shown).toContain(
      "EROFS, going by the command's own output, which can say anything: touch: cannot touch",
    );
    terminal.type("y");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(stripVTControlCharacters(terminal.shown)).toMatch(/│ \/etc\/note\r\n/);
  });

  it("asks once for a whole session, and once for a prefix", async () => {
    const call = (text: string) => shell(text, { ...escalated, prefix_rule: ["touch", "/etc/a"] });
    const file = await play(
      shell("id -u", escalated),
      shell("id -u", escalated),
      call("touch /etc/a"),
      call("touch /etc/a /etc/b"),
    );
    const terminal = await onTerminal(["-a", "on-request", "--script", file, "go"]);
    await terminal.waitFor(question);
    terminal.type("a");
    await terminal.waitFor(/begins with: touch \/etc\/a\r\n[\s\S]*Answer \(Enter is no\): $/);
    terminal.type("p");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(terminal.shown.match(/Answer \(Enter is no\)/g)).toHaveLength(2);
    expect(await sessionRecords(terminal.shown, "brig.call")).toMatchObject(
      Array.from({ length: 4 }, () => ({ success: true })),
    );
  });

  it.each([
    ["Escape", "\x1b"],
    ["ctrl-C", "\x03"],
  ])(
    "ends the turn with %s: nothing runs, the status says so, the terminal is as it was",
    async (_name, key) => {
      const file = await play(shell("touch made"), shell("touch later"));
      const terminal = await onTerminal(["-a", "untrusted", "--script", file, "go"]);
      await terminal.waitFor(question);
      terminal.type(key);
      const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
      expect(exitStatus).toBe(130);
      expect(settingsAfter).toBe(settingsBefore);
      await expect(access(join(workspace, "made"))).rejects.toThrow(/ENOENT/);
      await expect(access(join(workspace, "later"))).rejects.toThrow(/ENOENT/);
      expect(await sessionRecords(terminal.shown, "brig.approval")).toMatchObject([{}, { answer: "abort" }]);
    },
  );

  it("shows what would steer the terminal instead of doing it", async () => {
    const file = await play({ shell: { command: ["sort", "\x1b]0;; evil;\x07\u202e"] } });
    const terminal = await onTerminal(["-a", "untrusted", "--script", file, "go"]);
    await terminal.waitFor(question);
    expect(terminal.shown).toContain("␛]0;; evil;␇<U+202E>");
    expect(terminal.shown).not.toContain("\x1b]0;");
    terminal.type("n");
    expect((await terminal.end()).exitStatus).toBe(0);
  });
});
