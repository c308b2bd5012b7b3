import { execFileSync } from "node:child_process";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { pause } from "../../src/lib/time/pause.js";
import { brig, containersOf } from "../support/cli.js";
import {
  created,
  messageDone,
  respond,
  startResponsesServer,
  textDelta,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];

let folder: string;
let workspace: string;
let environment: Record<string, string>;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  workspace = join(folder, "work");
  const home = join(folder, "home");
  await mkdir(workspace);
  await mkdir(home);
  environment = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", NO_COLOR: "" };
});

interface Opening {
  /** YAML; what the model says and does. */
  steps: string;
  /** Default: none, which is `run`. */
  command?: string[];
  flags?: string[];
  env?: Record<string, string>;
  /** Default: false. */
  isJob?: boolean;
}

/** A conversation that is ready for the first message. */
async function converse({ steps, command = [], flags = [], env = {}, isJob }: Opening): Promise<Terminal> {
  const script = join(folder, "play.yaml");
  await writeFile(script, `steps:\n${steps}`);
  return await open([...command, "--script", script, ...onRuntime, ...flags], env, { isJob });
}

async function open(
  args: string[],
  env: Record<string, string>,
  { isJob }: { isJob?: boolean } = {},
): Promise<Terminal> {
  const terminal = await Terminal.open(args, { cwd: workspace, env: { ...environment, ...env }, isJob });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  await terminal.waitForScreen(/^›\s*$/m);
  return terminal;
}

/** Ctrl-D, once nothing runs any more. */
async function leave(terminal: Terminal): Promise<void> {
  await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/);
  terminal.type("\x04");
}

/** Pastes are no longer marked, and the cursor is seen. */
function expectPutBack({ shown }: Terminal): void {
  expect(shown.lastIndexOf("\x1b[?2004l")).toBeGreaterThan(shown.lastIndexOf("\x1b[?2004h"));
  expect(shown.lastIndexOf("\x1b[?25h")).toBeGreaterThan(shown.lastIndexOf("\x1b[?25l"));
}

/** Nothing of it is left: neither settings of the terminal nor a container. */
async function expectCleanEnd(terminal: Terminal, exitStatus = 0): Promise<void> {
  const outcome = await terminal.end();
  expect(outcome.exitStatus).toBe(exitStatus);
  expect(outcome.settingsAfter).toBe(outcome.settingsBefore);
  expect(terminal.shown.lastIndexOf("\x1b[?2004l")).toBeGreaterThan(
    terminal.shown.lastIndexOf("\x1b[?2004h"),
  );
  expect(terminal.shown.lastIndexOf("\x1b[?25h")).toBeGreaterThan(terminal.shown.lastIndexOf("\x1b[?25l"));
  expect(await containersOf(await terminal.pid())).toEqual([]);
}

describe("a conversation", () => {
  it("goes on from turn to turn, shows what runs while it runs, and ends on ctrl-D", async () => {
    const terminal = await converse({
      steps: `
  - text: Good day.
  - text: I look around.
    calls:
      - exec_command:
          cmd: "seq 1 9; while [ ! -e go ]; do sleep 0.1; done; echo the end"
  - text: All done.
`,
    });
    terminal.type("hello\r");
    await terminal.waitForScreen(/› hello[\s\S]*● Good day\.[\s\S]*^›\s*$/m);
    terminal.type("look\r");
    await terminal.waitForScreen(
      /⋮ 4 lines above[\s\S]*│ 5[\s\S]*│ 9\n[\s\S]*◦ working \d+ s · esc interrupts/,
    );
    await writeFile(join(workspace, "go"), "");
    await terminal.waitForScreen(/│ the end\n {2}✓ exit 0[\s\S]*● All done\.[\s\S]*^›\s*$/m);
    expect(terminal.screen.rows.join("\n")).not.toContain("working");
    expect(terminal.screen.history.filter((row) => row.includes("All done."))).toHaveLength(1);
    terminal.type("\x0f");
    await terminal.waitForScreen(/⋯ \$ seq 1 9[\s\S]*│ 1\n {2}│ 2\n/);
    await leave(terminal);
    await terminal.waitFor(/to continue: brig resume [0-9a-f-]{36}/);
    await expectCleanEnd(terminal);
    expect(terminal.screen.history.join("\n")).not.toContain("closing the sandbox");
  });

  it("interrupts a turn with ctrl-C, goes on with what was typed meanwhile, and ends on the second ctrl-C of two", async () => {
    const terminal = await converse({
      steps: `
  - calls: [{ exec_command: { cmd: "echo started; sleep 600", yield_time_ms: 30000 } }]
  - text: Still here.
`,
    });
    terminal.type("wait\r");
    await terminal.waitForScreen(/│ started/);
    terminal.type("and then\r");
    await terminal.waitForScreen(/next: and then/);
    terminal.type("\x03");
    await terminal.waitForScreen(/✗ stopped[\s\S]*! interrupted[\s\S]*› and then/);
    terminal.type("\r");
    await terminal.waitForScreen(/● Still here\.[\s\S]*^›\s*$/m);
    terminal.type("\x03");
    await terminal.waitForScreen(/press ctrl-C again to end the session/);
    terminal.type("\x03");
    await expectCleanEnd(terminal);
  });

  it("gives the terminal back to the shell on ctrl-Z, and goes on where it was", async () => {
    const terminal = await converse({
      steps: `
  - calls: [{ exec_command: { cmd: "while [ ! -e go ]; do sleep 0.1; done; echo gone", yield_time_ms: 30000 } }]
  - text: Back again.
`,
      isJob: true,
    });
    terminal.type("wait\r");
    await terminal.waitForScreen(/\$ while/);
    terminal.type("a draft\x1a");
    await terminal.waitFor(/Stopped|node[^\n]*main\.js/);
    await terminal.waitForScreen(/◦ working[\s\S]*^› a draft\s*$/m);
    await writeFile(join(workspace, "go"), "");
    await terminal.waitForScreen(/│ gone\n[\s\S]*● Back again\.[\s\S]*^› a draft\s*$/m);
    terminal.type("\x15");
    await leave(terminal);
    await expectCleanEnd(terminal);
    const { stopped, settingsBefore } = await terminal.end();
    expect(stopped).toEqual({ exitStatus: 128 + constants.signals.SIGTSTP, settings: settingsBefore });
  });

  it("takes ctrl-Z for nothing where no shell could bring it back", async () => {
    const terminal = await converse({ steps: "\n  - text: Still here.\n" });
    terminal.type("\x1a");
    // What is typed before the screen is back is read by the terminal's own rules, where Enter is a line feed.
    await terminal.waitFor(/\[\?2004l[\s\S]*\[\?2004h/);
    terminal.type("hello\r");
    await terminal.waitForScreen(/● Still here\.[\s\S]*^›\s*$/m);
    await leave(terminal);
    await expectCleanEnd(terminal);
  });

  it("answers slash commands, and says what an unknown one was meant to be", async () => {
    execFileSync("git", ["init", "--quiet"], { cwd: workspace });
    const terminal = await converse({
      steps: `
  - calls:
      - apply_patch: |
          *** Begin Patch
          *** Add File: new.txt
          +fresh
          *** End Patch
      - update_plan: { plan: [{ step: write, status: completed }, { step: test it, status: in_progress }] }
  - text: Written.
  - text: A summary of it all.
`,
    });
    terminal.type("write\r");
    await terminal.waitForScreen(
      /✎ patched 1 file\n {2}A .*new\.txt[\s\S]*☰ plan\n {2}✔ write\n {2}▶ test it[\s\S]*Written/,
    );
    terminal.type("/diff\r");
    await terminal.waitForScreen(/changes since the last commit[\s\S]*\+fresh/);
    terminal.type("/status\r");
    await terminal.waitForScreen(
      /model +scripted[\s\S]*mode +workspace-write[\s\S]*approvals +on-request[\s\S]*network +none[\s\S]*workspace +\/[\s\S]*container +[0-9a-f-]{36} from [\s\S]*session +[0-9a-f-]{36}\n[\s\S]*tokens +/,
    );
    terminal.type("/tools\r");
    await terminal.waitForScreen(/spawn_agent +on +tools\.multi_agent/);
    terminal.type("/compact\r");
    await terminal.waitForScreen(/summarised: about \d+ tokens became \d+/);
    terminal.type("/hlep\r");
    await terminal.waitForScreen(/there is no command \/hlep: did you mean \/help\?/);
    terminal.type("\x15/help\r");
    await terminal.waitForScreen(/\/mode MODE +continue in a new container/, { withHistory: true });
    terminal.type("/quit\r");
    await expectCleanEnd(terminal);
  });

  it("changes the mode in a new container, and asks before it gets weaker", async () => {
    const terminal = await converse({
      flags: ["-s", "read-only"],
      steps: `
  - calls: [{ exec_command: { cmd: "touch a && echo wrote" } }]
  - text: One.
  - calls: [{ exec_command: { cmd: "touch b && echo wrote" } }]
  - text: Two.
`,
    });
    terminal.type("try\r");
    await terminal.waitForScreen(/Read-only file system[\s\S]*● One\./);
    terminal.type("/mode workspace-write\r");
    await terminal.waitForScreen(/Change from read-only to workspace-write\?[\s\S]*y {4}yes/);
    await pause(600);
    terminal.type("y");
    await terminal.waitForScreen(/workspace-write from now on[\s\S]*^›\s*\nworkspace-write/m);
    terminal.type("again\r");
    await terminal.waitForScreen(/│ wrote[\s\S]*● Two\./);
    await stat(join(workspace, "b"));
    await expect(stat(join(workspace, "a"))).rejects.toThrow();
    terminal.type("/mode read-only\r");
    await terminal.waitForScreen(/read-only from now on/);
    await leave(terminal);
    await expectCleanEnd(terminal);
  });

  it("shows a message as it streams in, keeps what there was of it when it is interrupted, and asks again", async () => {
    await using server = await startResponsesServer([
      {
        kind: "stream",
        events: [created(), textDelta("One li"), textDelta("ne.\nHalf a li")],
        ending: "hang",
      },
      respond(textDelta("Who"), textDelta("le."), messageDone("Whole.")),
    ]);
    const terminal = await open(["-m", "gpt-5-test", ...onRuntime], {
      OPENAI_API_KEY: "key-1",
      OPENAI_BASE_URL: server.url,
    });
    await terminal.waitForScreen(/workspace-write · gpt-5-test · \d+ % context left/);
    terminal.type("stream\r");
    await terminal.waitForScreen(/● One line\.\n {2}Half a li\n\s*\n◦ working/);
    terminal.type("\x03");
    await terminal.waitForScreen(/● One line\.\n {2}Half a li\n! interrupted/);
    terminal.type("again\r");
    await terminal.waitForScreen(/● Whole\./);
    await leave(terminal);
    await terminal.waitFor(/\d+ tokens in, \d+ out/);
    await expectCleanEnd(terminal);
    expect(terminal.screen.history.filter((row) => row.includes("Whole."))).toHaveLength(1);
    const [, second] = server.requests;
    expect(JSON.stringify(second?.body.input)).toMatch(/stream.*turn_aborted.*again/);
  });

  it("shows the model the pictures of the command line with the first message, and once", async () => {
    await using server = await startResponsesServer([
      respond(messageDone("A dot.")),
      respond(messageDone("Still a dot.")),
    ]);
    const picture = join(folder, "dot.gif");
    await writeFile(picture, Buffer.from("R0lGODlhAQABAAAAACwAAAAAAQABAAA=", "base64"));
    const terminal = await open(["-m", "gpt-5-test", "-i", picture, ...onRuntime], {
      OPENAI_API_KEY: "key-1",
      OPENAI_BASE_URL: server.url,
    });
    terminal.type("what is it\r");
    await terminal.waitForScreen(/● A dot\.[\s\S]*^›\s*$/m);
    terminal.type("and now\r");
    await terminal.waitForScreen(/● Still a dot\./);
    await leave(terminal);
    await expectCleanEnd(terminal);
    const inputs = server.requests.map(({ body }) => JSON.stringify(body.input));
    expect(inputs[0]).toMatch(/data:image\/gif;base64,R0lGOD.*what is it/);
    expect(inputs.map((input) => input.split("data:image/gif").length - 1)).toEqual([1, 1]);
  });

  it("asks what the model wants to know, in place", async () => {
    const terminal = await converse({
      steps: `
  - calls:
      - request_user_input:
          questions:
            - id: colour
              header: Colour
              question: Which one?
              options:
                - { label: red, description: As blood. }
                - { label: blue, description: As the sea. }
  - expect: { contains: blue }
    text: Blue it is.
`,
    });
    terminal.type("ask\r");
    await terminal.waitForScreen(/Which one\?\n +1 +red – As blood\.\n +2 +blue/);
    await pause(600);
    terminal.type("2");
    await terminal.waitForScreen(/→ blue[\s\S]*● Blue it is\./);
    await leave(terminal);
    await expectCleanEnd(terminal);
  });

  it("asks in place before a command leaves the sandbox, and takes a no and a yes", async () => {
    const ask =
      '{ cmd: "id -u; touch asked-for", sandbox_permissions: require_escalated, justification: it must }';
    const terminal = await converse({
      steps: `
  - calls: [{ exec_command: ${ask} }]
  - text: Not done.
  - calls: [{ exec_command: ${ask} }]
  - text: Done.
`,
    });
    terminal.type("do\r");
    await terminal.waitForScreen(
      /OUTSIDE the sandbox[\s\S]*│ id -u; touch asked-for\n[\s\S]*it must[\s\S]*Run it\?\n {2}│ id -u; touch asked-for\n +y +yes, this once\n/,
    );
    terminal.type("no way");
    await terminal.waitForScreen(/› no way/);
    await pause(600);
    terminal.type("n");
    await terminal.waitForScreen(/→ no, go on without it[\s\S]*● Not done\./);
    terminal.type("\x15again\r");
    await terminal.waitForScreen(/Run it\?/);
    await pause(600);
    terminal.type("y");
    await terminal.waitForScreen(/→ yes, this once[\s\S]*│ 0\n {2}✓ exit 0[\s\S]*● Done\./);
    await stat(join(workspace, "asked-for"));
    await leave(terminal);
    await expectCleanEnd(terminal);
  });

  it("asks again in another mode about what was approved for the session", async () => {
    const call =
      '  - calls: [{ exec_command: { cmd: "echo more >> /etc/note; wc -l < /etc/note", sandbox_permissions: require_escalated } }]';
    const terminal = await converse({
      steps: `
${call}
  - text: One.
${call}
  - text: Two.
${call}
  - text: Three.
`,
    });
    terminal.type("do\r");
    await terminal.waitForScreen(/Run it\?/);
    await pause(600);
    terminal.type("a");
    await terminal.waitForScreen(/│ 1\n[\s\S]*● One\./);
    terminal.type("again\r");
    await terminal.waitForScreen(/│ 2\n[\s\S]*● Two\./);
    terminal.type("/mode read-only\r");
    await terminal.waitForScreen(/read-only from now on[\s\S]*approvals\s+you\s+gave\s+are\s+forgotten/);
    terminal.type("and now\r");
    await terminal.waitForScreen(/● Two\.[\s\S]*Run it\?/);
    await pause(600);
    terminal.type("n");
    await terminal.waitForScreen(/→ no, go on without it[\s\S]*● Three\./);
    await leave(terminal);
    await expectCleanEnd(terminal);
  });

  it("lets nothing that a tool or the model printed act on the terminal", async () => {
    const evil = String.raw`\033]52;c;ZXZpbA==\007\033]0;evil\007\033[2J\033[1;1Hgone\033[6n\033[?1049h\202\342\200\256rtl\r\007`;
    const terminal = await converse({
      steps: `
  - text: "I\\e]52;c;ZXZpbA==\\a\\e[2J\\e]0;evil\\a\\e[1;1Hsay\\u202e\\a"
    calls:
      - exec_command: { cmd: "printf '${evil.replaceAll("\\", "\\\\")}\\\\n'" }
      - update_plan: { plan: [{ step: "\\e[2Jstep\\u202e", status: pending }] }
  - text: Over.
`,
    });
    terminal.type("be evil\r");
    await terminal.waitForScreen(/Over\.[\s\S]*^›\s*$/m);
    expect(terminal.deeds).toEqual([]);
    const shown = terminal.screen.rows.join("\n");
    expect(shown).toContain("Isay<U+202E>");
    expect(shown).toContain("│ gone");
    expect(shown).toContain("□ step<U+202E>");
    expect(shown).toContain("› be evil");
    for (const forbidden of ["\x1b]", "\x1b[1;1H", "\x1b[6n", "\x1b[?1049h", "\u202e", "\x07"])
      expect(terminal.shown).not.toContain(forbidden);
    await leave(terminal);
    await expectCleanEnd(terminal);
  });

  it("keeps a paste whole and runs nothing of it, takes several lines, and remembers them", async () => {
    const steps = "\n  - text: Heard.\n";
    const terminal = await converse({ steps });
    terminal.type("\x1b[200~first\r\n/quit\r\nthird\r\n\x1b[201~");
    await terminal.waitForScreen(/› first\n {2}\/quit\n {2}third\n/);
    terminal.type("\x7fand\x1b\rmore\r");
    await terminal.waitForScreen(/● Heard\./);
    await leave(terminal);
    await expectCleanEnd(terminal);
    const history = join(environment.BRIG_HOME ?? "", "history.jsonl");
    expect(JSON.parse(await readFile(history, "utf8")).text).toBe("first\n/quit\nthirdand\nmore");
    expect((await stat(history)).mode & 0o777).toBe(0o600);
    const next = await converse({ steps });
    next.type("\x1b[A");
    await next.waitForScreen(/› first\n {2}\/quit\n {2}thirdand\n {2}more/);
    next.type("\x03\x04");
    await expectCleanEnd(next);
  });

  it("is drawn anew on a screen of another size, and works on a narrow one", async () => {
    const terminal = await converse({
      steps: `
  - text: A sentence that is long enough to need more than one row on a narrow screen.
  - text: Short.
`,
    });
    terminal.type("say\r");
    await terminal.waitForScreen(/narrow screen\./);
    await terminal.resize(12, 34);
    await terminal.waitForScreen(
      /● A sentence that is long enough\n {2}to need more than one row on a\n {2}narrow screen\./,
    );
    await terminal.waitForScreen(/^›\s*\nworkspace-write · scripted$/m);
    expect(
      terminal.screen.rows
        .join("\n")
        .match(/^›.*$/gm)
        ?.map((row) => row.trimEnd()),
    ).toEqual(["› say", "›"]);
    terminal.type("more and more words than fit into");
    await terminal.waitForScreen(/› more and more words than fit in\n {2}to/);
    terminal.type("\r");
    await terminal.waitForScreen(/● Short\./);
    await terminal.resize(40, 120);
    terminal.type("x");
    await terminal.waitForScreen(/^› x$/m);
    terminal.type("\x15\x04");
    await expectCleanEnd(terminal);
  });

  it("puts the terminal back when it is killed with SIGTERM in the middle of a turn", async () => {
    const terminal = await converse({
      steps: '\n  - calls: [{ exec_command: { cmd: "echo started; sleep 600" } }]\n  - text: never\n',
    });
    terminal.type("wait\r");
    await terminal.waitForScreen(/│ started/);
    process.kill(await terminal.pid(), "SIGTERM");
    await expectCleanEnd(terminal, 143);
    expect(terminal.shown).toContain("brig: interrupted by SIGTERM");
  });

  it.each([
    { how: "it is told twice to end at once", signals: ["SIGTERM", "SIGTERM"], exitStatus: 143 },
    { how: "it is told to quit", signals: ["SIGQUIT"], exitStatus: 131 },
    { how: "it crashes", signals: ["SIGUSR2"], exitStatus: 1 },
  ] as const)("puts the terminal back when $how", async ({ signals, exitStatus }) => {
    const crash = "process.on('SIGUSR2',()=>{throw(new(Error)('crash'))})";
    const terminal = await converse({
      steps: "\n  - text: never\n",
      // Without an engine there is no container that would be left behind for a while.
      env: {
        DOCKER_HOST: "unix:///proc/nowhere.sock",
        NODE_OPTIONS: `--import=data:text/javascript,${crash}`,
      },
    });
    await terminal.waitForScreen(/✗ .*nowhere\.sock/);
    const pid = await terminal.pid();
    for (const signal of signals) process.kill(pid, signal);
    const outcome = await terminal.end();
    expect(outcome.exitStatus).toBe(exitStatus);
    expect(outcome.settingsAfter).toBe(outcome.settingsBefore);
    expectPutBack(terminal);
  });

  it("ends in order when the window is closed", async () => {
    const terminal = await converse({
      steps: '\n  - calls: [{ exec_command: { cmd: "echo started; sleep 600" } }]\n  - text: never\n',
    });
    terminal.type("wait\r");
    await terminal.waitForScreen(/│ started/);
    const pid = await terminal.pid();
    await terminal.closeWindow();
    await waitUntil(() => !isRunning(pid));
    expect(await containersOf(pid)).toEqual([]);
  });

  it("takes keys, and stops when it is told to, in the middle of a flood", async () => {
    const terminal = await converse({
      steps: '\n  - calls: [{ exec_command: { cmd: "yes", yield_time_ms: 30000 } }]\n  - text: never\n',
    });
    terminal.type("flood\r");
    await terminal.waitForScreen(/⋮ \d{6,} lines above/);
    const started = performance.now();
    terminal.type("hello");
    await terminal.waitForScreen(/^› hello$/m);
    terminal.type("\x03");
    await terminal.waitForScreen(/✗ stopped\n! interrupted/);
    // The flood would go on for thirty seconds.
    expect((performance.now() - started) / 30_000).toBeLessThan(0.6);
    const status = await readFile(`/proc/${await terminal.pid()}/status`, "utf8");
    expect(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1])).toBeLessThan(400_000);
    terminal.type("\x15");
    await leave(terminal);
    await expectCleanEnd(terminal);
  });

  it("goes on where it was left, with what was said before on the screen", async () => {
    const first = await converse({ steps: "\n  - text: The answer is 42.\n" });
    first.type("what is it\r");
    await first.waitForScreen(/● The answer is 42\./);
    await leave(first);
    await expectCleanEnd(first);
    const [, id = ""] = /brig resume ([0-9a-f-]{36})/.exec(first.shown) ?? [];
    const second = await converse({ steps: "\n  - text: Still 42.\n", command: ["resume", id] });
    await second.waitForScreen(/resumed[\s\S]*› what is it[\s\S]*● The answer is 42\.[\s\S]*^›\s*$/m);
    second.type("and now\r");
    await second.waitForScreen(/● Still 42\./);
    await leave(second);
    await expectCleanEnd(second);
    expect(second.shown).toContain(`brig resume ${id}`);
  });

  it("has no colours where there are to be none", async () => {
    const terminal = await converse({ steps: "\n  - text: Plain.\n", env: { NO_COLOR: "1" } });
    terminal.type("hello\r");
    await terminal.waitForScreen(/● Plain\./);
    await leave(terminal);
    await expectCleanEnd(terminal);
    expect(terminal.shown).not.toMatch(new RegExp(String.raw`${"\x1b"}\[[\d;]*m`));
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function waitUntil(isTrue: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 60_000; !isTrue(); await pause(50))
    if (Date.now() > deadline) throw new Error("it did not come to pass");
}

describe("brig without a prompt", () => {
  it("is help where there is no terminal, or a machine is at it", async () => {
    const piped = await brig([], { env: environment });
    expect(piped.stdout).toMatch(/^Usage: brig /);
    const machine = await Terminal.open([], { cwd: workspace, env: { ...environment, CI: "1" } });
    onTestFinished(() => machine[Symbol.asyncDispose]());
    expect((await machine.end()).exitStatus).toBe(0);
    expect(machine.shown).toMatch(/^Usage: brig /);
    expect(machine.shown).not.toContain("\x1b");
  });
});

describe("what is typed while a conversation starts", () => {
  it.each([
    ["with nothing else", []],
    ["with a picture that takes a moment", ["-i", "PICTURE"]],
  ])("is its first message, %s", async (_, flags) => {
    const script = join(folder, "play.yaml");
    await writeFile(script, "steps:\n  - text: Good day.\n  - text: Again.\n");
    const picture = join(folder, "picture.gif");
    await writeFile(picture, Buffer.from("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==", "base64"));
    const terminal = await Terminal.open(
      ["--script", script, ...onRuntime, ...flags.map((flag) => flag.replace("PICTURE", picture))],
      { cwd: workspace, env: environment },
    );
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    // The shell before it has the terminal still, then node, then what loads the conversation.
    terminal.type("hel");
    terminal.type("lo\r");
    for (const key of "more") {
      await pause(30);
      terminal.type(key);
    }
    await terminal.waitForScreen(/› hello[\s\S]*● Good day\.[\s\S]*^› more\s*$/m);
    terminal.type("\r");
    await terminal.waitForScreen(/› more[\s\S]*● Again\./m);
    await leave(terminal);
    await expectCleanEnd(terminal);
  });
});
