import { mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { commitFile, createRepository, git } from "../support/git-repositories.js";
import { mcpFolders } from "../support/mcp-folders.js";
import {
  callDone,
  messageDone,
  type ReceivedRequest,
  type Reply,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];
const [DOWN, ENTER] = ["\x1b[B", "\r"];

let workspace: string;
let home: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  [workspace, home] = [join(directory.path, "work"), join(directory.path, "home")];
  await mkdir(workspace);
  await mkdir(home);
});

async function open(args: string[], { cwd = workspace, isReady = /^›\s*$/m } = {}): Promise<Terminal> {
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", NO_COLOR: "" };
  const terminal = await Terminal.open(args, { cwd, env });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  await terminal.waitForScreen(isReady);
  return terminal;
}

/** Ctrl-D, once nothing runs any more. Nothing is left of the program. */
async function leave(terminal: Terminal): Promise<void> {
  await terminal.waitForScreen(/^(?![\s\S]*(?:◦ |starting the sandbox))[\s\S]*\n›\s*\n/);
  terminal.type("\x04");
  const outcome = await terminal.end();
  expect(outcome.exitStatus).toBe(0);
  expect(outcome.settingsAfter).toBe(outcome.settingsBefore);
  expect(await containersOf(await terminal.pid())).toEqual([]);
}

/** A script whose only turn runs a command and then says the end. */
async function script(command: string): Promise<string[]> {
  const file = join(home, "play.yaml");
  const step = `steps:\n  - calls: [{ exec_command: { cmd: ${JSON.stringify(command)} } }]\n  - text: The end.\n`;
  await writeFile(file, step);
  return ["--script", file, ...onRuntime];
}

interface Endpoint {
  requests: ReceivedRequest[];
}

/** An endpoint that has these models, and answers as it is asked; it is the one of the configuration. */
async function endpoint(
  answer: (request: ReceivedRequest) => Reply,
  { models = ["gpt-5-test", "gpt-6-big", "plain"] as string[] | null, config = "" } = {},
): Promise<Endpoint> {
  const server = await startResponsesServer((request) => {
    if (!request.url.endsWith("/models")) return answer(request);
    if (models === null) return { kind: "status", status: 404 };
    return { kind: "status", status: 200, body: { data: models.map((id) => ({ id })) } };
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const provider = (name: string) => `[model_providers.${name}]
base_url = "${server.url}"
`;
  await writeFile(
    join(home, "config.toml"),
    `model = "gpt-5-test"\nmodel_provider = "one"\n${config}\n${provider("one")}${provider("two")}
[profiles.other]
model = "gpt-5-of-two"
model_provider = "two"
`,
  );
  return server;
}

const turns = ({ requests }: Endpoint) => requests.filter(({ url }) => url.endsWith("/responses"));

async function sessionFiles(): Promise<string[]> {
  const found = await readdir(join(home, "sessions"), { recursive: true }).catch(() => []);
  return found.filter((name) => name.endsWith(".jsonl")).map((name) => join(home, "sessions", name));
}

describe("/model", () => {
  it("goes on with a chosen model and effort, with its own tools, and a resumed session does, too", async () => {
    const server = await endpoint(({ body }) => respond(messageDone(`I am ${body.model}.`)));
    const terminal = await open(onRuntime);
    terminal.type("hello\r");
    await terminal.waitForScreen(/● I am gpt-5-test\./);
    terminal.type("/model\r");
    await terminal.waitForScreen(/Which model\?\n› gpt-5-test {2}present · one\n/);
    terminal.type("big");
    await terminal.waitForScreen(/› gpt-6-big {2}one\n {2}up, down, Enter · narrowed to: big/);
    terminal.type(ENTER);
    await terminal.waitForScreen(/How much should gpt-6-big reason\?\n› default {2}present/);
    terminal.type("high");
    await terminal.waitForScreen(/› high\n/);
    terminal.type(ENTER);
    await terminal.waitForScreen(/gpt-6-big with reasoning effort high from now on[\s\S]*gpt-6-big high ·/);
    terminal.type("again\r");
    await terminal.waitForScreen(/● I am gpt-6-big\./);
    terminal.type("/status\r");
    await terminal.waitForScreen(/model +gpt-6-big \(one\)\n +effort +high/);
    terminal.type("/model plain\r");
    await terminal.waitForScreen(/plain from now on/);
    terminal.type("third\r");
    await terminal.waitForScreen(/● I am plain\./);
    await leave(terminal);
    const [, second, third] = turns(server);
    expect(second?.body).toMatchObject({ model: "gpt-6-big", reasoning: { effort: "high" } });
    expect(JSON.stringify(second?.body.input)).toContain("I am gpt-5-test.");
    const patchOf = (request: ReceivedRequest | undefined) => {
      const tools = (request?.body.tools ?? []) as { name: string; type: string }[];
      return tools.find(({ name }) => name === "apply_patch")?.type;
    };
    expect([patchOf(second), patchOf(third)]).toEqual(["custom", "function"]);
    const [id] = /[0-9a-f-]{36}(?=\.jsonl)/.exec((await sessionFiles())[0] ?? "") ?? [];
    const resumed = await open(["resume", id ?? "", ...onRuntime]);
    resumed.type("more\r");
    await resumed.waitForScreen(/› more[\s\S]*● I am plain\./);
    await leave(resumed);
  });

  it("takes the model of a profile with its provider, whose endpoint gets no reasoning of another one", async () => {
    const server = await endpoint(({ body }) => respond(messageDone(`I am ${body.model}.`)), {
      config: 'model_reasoning_effort = "low"',
    });
    const terminal = await open(onRuntime);
    terminal.type("/model\r");
    await terminal.waitForScreen(/gpt-5-of-two {2}profile other · two/);
    terminal.type(`of-two${ENTER}`);
    await terminal.waitForScreen(/How much should gpt-5-of-two reason/);
    terminal.type(`med${ENTER}`);
    await terminal.waitForScreen(/gpt-5-of-two with reasoning effort medium from now on/);
    terminal.type("hello\r");
    await terminal.waitForScreen(/● I am gpt-5-of-two\./);
    await leave(terminal);
    const [file = ""] = await sessionFiles();
    const lines = (await readFile(file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines[0].payload.model_provider).toBe("two");
    const [id] = /[0-9a-f-]{36}(?=\.jsonl)/.exec(file) ?? [];
    const resumed = await open(["resume", id ?? "", ...onRuntime]);
    await resumed.waitForScreen(/gpt-5-of-two medium ·/);
    resumed.type("more\r");
    await resumed.waitForScreen(/› more[\s\S]*● I am gpt-5-of-two\./);
    await leave(resumed);
    expect(turns(server).map(({ body }) => body.reasoning)).toMatchObject([
      { effort: "medium" },
      { effort: "medium" },
    ]);
  });

  it("refuses a model that the endpoint does not have, and warns where it has no list", async () => {
    await endpoint(({ body }) => respond(messageDone(`I am ${body.model}.`)));
    const terminal = await open(onRuntime);
    terminal.type("/model gpt-6-bgi\r");
    await terminal.waitForScreen(
      /has no model gpt-6-bgi, so nothing has changed\s+hint: did you mean gpt-6-big\?/,
    );
    terminal.type("/model gpt-6-big enormous\r");
    await terminal.waitForScreen(/\/model gpt-6-big enormous cannot be understood/);
    terminal.type("hello\r");
    await terminal.waitForScreen(/● I am gpt-5-test\./);
    await leave(terminal);
    await endpoint(({ body }) => respond(messageDone(`I am ${body.model}.`)), { models: null });
    const other = await open(onRuntime);
    other.type("/model unlisted\r");
    await other.waitForScreen(/lists no models[\s\S]*unlisted from now on/);
    other.type("hello\r");
    await other.waitForScreen(/● I am unlisted\./);
    await leave(other);
  });

  it("does not end a command that runs in the background", async () => {
    const run = callDone("one", "exec_command", { cmd: "echo begun; sleep 600", yield_time_ms: 300 });
    const look = (id: string) => callDone("two", "write_stdin", { session_id: Number(id), chars: "" });
    await endpoint(({ body }) => {
      const input = JSON.stringify(body.input);
      if (input.includes("still there")) {
        const session = /session ID (\d+)/.exec(input)?.[1] ?? "0";
        return respond(input.includes('"two"') ? messageDone("Looked.") : look(session));
      }
      return respond(input.includes("begun") ? messageDone("It runs.") : run);
    });
    const terminal = await open(onRuntime);
    terminal.type("go\r");
    await terminal.waitForScreen(/● It runs\./);
    terminal.type("/model plain\r");
    await terminal.waitForScreen(/plain from now on/);
    terminal.type("is it still there\r");
    await terminal.waitForScreen(/● Looked\./);
    const [file = ""] = await sessionFiles();
    expect(await readFile(file, "utf8")).toMatch(
      /"call_id":"two","output":"[^"]*Process running with session ID/,
    );
    await leave(terminal);
  });
});

describe("another session in the same terminal", () => {
  const LOOK = "cat /tmp/mark; echo kept > /tmp/mark; echo $(ls | wc -l) files; touch $(date +%N)";

  it("begins empty and in a fresh sandbox with /new, and says how to go on with the one before", async () => {
    const terminal = await open(await script(LOOK));
    terminal.type("first prompt\r");
    await terminal.waitForScreen(/No such file[\s\S]*│ 0 files[\s\S]*● The end\./);
    terminal.type("/new\r");
    await terminal.waitForScreen(/to continue: brig resume [0-9a-f-]{36}\n[\s\S]*brig \d[\s\S]*\n›\s*\n/);
    terminal.type("second prompt\r");
    await terminal.waitForScreen(/second prompt[\s\S]*No such file[\s\S]*│ 1 files[\s\S]*● The end\./);
    await leave(terminal);
    const files = await sessionFiles();
    const prompts = await Promise.all(files.map(async (file) => await readFile(file, "utf8")));
    expect(prompts.map((text) => [/first prompt/.test(text), /second prompt/.test(text)]).toSorted()).toEqual(
      [
        [false, true],
        [true, false],
      ],
    );
    expect(new Set(prompts.map((text) => JSON.parse(text.split("\n", 1)[0] ?? "").payload.id)).size).toBe(2);
  });

  it("also clears the screen with /clear, and keeps the mode and the model that were chosen", async () => {
    const server = await endpoint(({ body }) => respond(messageDone(`I am ${body.model}.`)));
    const terminal = await open(onRuntime);
    terminal.type("of the first\r");
    await terminal.waitForScreen(/● I am gpt-5-test\./);
    terminal.type("/model gpt-6-big low\r");
    await terminal.waitForScreen(/gpt-6-big with reasoning effort low from now on/);
    terminal.type("/mode read-only\r");
    await terminal.waitForScreen(/read-only from now on/);
    terminal.type("/clear\r");
    await terminal.waitForScreen(
      /^(?![\s\S]*of the first)\s*\d+ tokens in[^\n]*\s*to continue: brig resume [0-9a-f-]{36}\n[\s\S]*gpt-6-big · read-only/,
    );
    terminal.type("of the second\r");
    await terminal.waitForScreen(/● I am gpt-6-big\./);
    await leave(terminal);
    const last = turns(server).at(-1);
    expect(last?.body.reasoning).toMatchObject({ effort: "low" });
    expect(JSON.stringify(last?.body.input)).not.toContain("of the first");
    expect(JSON.stringify(last?.body.input)).toContain("read-only");
  });

  it("is chosen from a list with /resume, and goes on where it was", async () => {
    const server = await endpoint(({ body }) => respond(messageDone(`Heard ${body.input.length}.`)));
    const first = await open(onRuntime);
    first.type("the word is amber\r");
    await first.waitForScreen(/● Heard/);
    await leave(first);
    const terminal = await open(onRuntime);
    terminal.type("an unrelated one\r");
    await terminal.waitForScreen(/● Heard/);
    terminal.type("/resume\r");
    await terminal.waitForScreen(/Which session of work\?[\s\S]*› +now +work +the word is amber\n/);
    expect(terminal.screen.rows.join("\n")).not.toMatch(/work +an unrelated one/);
    terminal.type(ENTER);
    await terminal.waitForScreen(
      /to continue: brig resume[\s\S]*resumed[\s\S]*› the word is amber[\s\S]*● Heard[\s\S]*\n›\s*\n/,
    );
    terminal.type("what is the word\r");
    await terminal.waitForScreen(/› what is the word[\s\S]*● Heard/);
    await leave(terminal);
    const input = JSON.stringify(turns(server).at(-1)?.body.input);
    expect(input).toMatch(/amber.*what is the word/);
    expect(input).not.toContain("unrelated");
    expect(await sessionFiles()).toHaveLength(2);
  });

  it("is not begun if it cannot be, and the present one goes on in its sandbox", async () => {
    const run = (id: string, cmd: string) => respond(callDone(id, "exec_command", { cmd }));
    const server = await endpoint(({ body }) => {
      const input = JSON.stringify(body.input);
      if (!input.includes('"one"')) return run("one", "echo kept > /tmp/mark");
      if (input.includes("the second prompt") && !input.includes('"two"')) return run("two", "cat /tmp/mark");
      return respond(messageDone(`Heard ${body.input.length}.`));
    });
    const terminal = await open(onRuntime);
    terminal.type("before\r");
    await terminal.waitForScreen(/● Heard/);
    await writeFile(join(home, "config.toml"), "model_provider = 3\n");
    terminal.type("/new\r");
    await terminal.waitForScreen(/✗ .*model_provider/);
    terminal.type("the second prompt\r");
    await terminal.waitForScreen(/› the second prompt[\s\S]*\$ cat[\s\S]*│ kept[\s\S]*● Heard/);
    await leave(terminal);
    expect(JSON.stringify(turns(server).at(-1)?.body.input)).toMatch(/before.*the second prompt/);
  });
});

describe("brig resume without a session", () => {
  /** Writes a session of that folder, as old as it says. */
  async function record(prompt: string, { cwd = workspace, branch = "main", hours = 1 } = {}): Promise<void> {
    const folder = join(home, "sessions", "2026", "11", "20");
    await mkdir(folder, { recursive: true });
    const number = (await readdir(folder)).length;
    const id = `0190a0b0-0000-7000-8000-${String(number).padStart(12, "0")}`;
    const file = join(folder, `rollout-2026-11-20T10-00-00-${id}.jsonl`);
    const content = [{ type: "input_text", text: prompt }];
    const records = [
      {
        type: "session_meta",
        payload: { id, cwd, git: { branch }, model_provider: "one", timestamp: "2026-11-20T10:00:00Z" },
      },
      { type: "response_item", payload: { type: "message", role: "user", content } },
    ];
    await writeFile(file, records.map((one) => `${JSON.stringify(one)}\n`).join(""));
    const time = Date.now() / 1000 - hours * 3600;
    await utimes(file, time, time);
  }

  it("lists those of the folder with age, branch and prompt, narrows by what is typed, and resumes", async () => {
    const server = await endpoint(({ body }) => respond(messageDone(`Heard ${body.input.length}.`)));
    await record("paint it blue", { branch: "feature/sea", hours: 2 });
    await record("paint it red", { hours: 50 });
    await record("of another folder", { cwd: join(home, "elsewhere") });
    const terminal = await open(["resume", ...onRuntime], { isReady: /paint it red/ });
    expect(terminal.screen.rows.join("\n")).toMatch(
      /Which session of work\?\n {2}the sessions of all folders …\n› +2 h +work +feature\/sea +paint it blue\n +2 d +work +main +paint it red\n/,
    );
    expect(terminal.screen.rows.join("\n")).not.toContain("of another folder");
    terminal.type(`red${ENTER}`);
    await terminal.waitForScreen(/resumed\n\s*› paint it red[\s\S]*\n›\s*\n/);
    terminal.type("and now\r");
    await terminal.waitForScreen(/● Heard/);
    await leave(terminal);
    expect(JSON.stringify(turns(server)[0]?.body.input)).toMatch(/paint it red.*and now/);
  });

  it("lists all folders with --all or when that is chosen, and leaves on Esc and ctrl-C", async () => {
    await record("of this folder");
    await record("of another folder", { cwd: join(home, "elsewhere") });
    const all = await open(["resume", "--all"], { isReady: /of this folder/ });
    await all.waitForScreen(/elsewhere +main +of another folder/);
    all.type("\x1b");
    expect(await all.end()).toMatchObject({ exitStatus: 0 });
    const terminal = await open(["resume"], { isReady: /of this folder/ });
    terminal.type(`\x1b[A${ENTER}`);
    await terminal.waitForScreen(/Which session\?[\s\S]*elsewhere +main +of another folder/);
    terminal.type(DOWN);
    terminal.type("\x03");
    const outcome = await terminal.end();
    expect(outcome.exitStatus).toBe(130);
    expect(outcome.settingsAfter).toBe(outcome.settingsBefore);
  });

  it("lets nothing of a session file act on the terminal", async () => {
    const evil = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[1;1Hgone\u202e\x1b]0;evil\x07";
    await record(`say ${evil}`, { branch: `b${evil}` });
    await record("long ".repeat(20_000), { branch: "b".repeat(5000), hours: 3 });
    const terminal = await open(["resume"], { isReady: /say/ });
    await terminal.waitForScreen(/long long/);
    expect(terminal.deeds).toEqual([]);
    for (const forbidden of ["\x1b]52", "\x1b[1;1H", "\x1b]0;", "\u202e", "\x07"])
      expect(terminal.shown).not.toContain(forbidden);
    terminal.type("\x1b");
    expect((await terminal.end()).exitStatus).toBe(0);
  });
});

describe("/review", () => {
  const found = (title: string) => ({
    findings: [
      {
        ...{ title, body: "It breaks.", confidence_score: 0.9, priority: 1 },
        code_location: { absolute_file_path: join(workspace, "app.js"), line_range: { start: 2, end: 2 } },
      },
    ],
    ...{ overall_correctness: "patch is incorrect", overall_explanation: "It has a fault." },
    overall_confidence_score: 0.8,
  });

  beforeEach(async () => {
    await createRepository(workspace);
    await commitFile(workspace, "app.js", "one\n");
    git(workspace, ["checkout", "-q", "-b", "feature"]);
    await commitFile(workspace, "app.js", "one\ntwo\n");
    await writeFile(join(workspace, "app.js"), "one\nthree\n");
  });

  /** A reviewer that looks at the change first, and anybody else. */
  const reviewer = ({ body }: ReceivedRequest) => {
    const isReview = JSON.stringify(body.text ?? {}).includes("findings");
    if (!isReview) return respond(messageDone("I know of it."));
    const hasLooked = JSON.stringify(body.input).includes("function_call_output");
    return respond(
      hasLooked
        ? messageDone(JSON.stringify(found("[P1] Keep two")))
        : callDone("look", "exec_command", { cmd: "git diff" }),
    );
  };

  it("reviews what is chosen, shows the findings, and gives them to the model", async () => {
    const server = await endpoint(reviewer);
    const terminal = await open(onRuntime);
    terminal.type("/review\r");
    await terminal.waitForScreen(/What should be reviewed\?\n› what is not committed/);
    terminal.type(ENTER);
    await terminal.waitForScreen(
      /reviewing what is not committed[\s\S]*\$ git diff[\s\S]*\+three[\s\S]*● It has a fault\.[\s\S]*\[P1\] Keep two — \/\S*app\.js:2-2/,
    );
    expect(terminal.screen.rows.join("\n")).not.toContain("overall_correctness");
    terminal.type("do you know\r");
    await terminal.waitForScreen(/● I know of it\./);
    await leave(terminal);
    const [review, , after] = turns(server);
    expect(JSON.stringify(review?.body.input)).toMatch(/Review what is not committed yet/);
    expect(JSON.stringify(review?.body.tools)).not.toContain("apply_patch");
    expect(JSON.stringify(after?.body.input)).toMatch(/<user_action>.*Keep two.*do you know/);
    // The model of the conversation never sees the calls of the reviewer.
    expect(JSON.stringify(after?.body.input)).not.toContain("function_call");
    const [file = ""] = await sessionFiles();
    expect(await sessionFiles()).toHaveLength(1);
    expect(await readFile(file, "utf8")).toMatch(/session_meta[\s\S]*user_action/);
  });

  /** A reviewer that runs this first, and anybody else, who says what the reviewer has seen of it. */
  const reviewerThatRuns = (cmd: string) =>
    endpoint(({ body }) => {
      if (!JSON.stringify(body.text ?? {}).includes("findings")) return respond(messageDone("I know of it."));
      const output = body.input.find(({ type }) => type === "function_call_output")?.output;
      if (output === undefined) return respond(callDone("try", "exec_command", { cmd }));
      return respond(messageDone(JSON.stringify(found(`[P1] ${/(?:IN|OUT)SIDE/.exec(`${output}`)?.[0]}`))));
    });
  const CHANGE = "cat app.js; touch new.txt && echo IN$(echo SIDE) || echo OUT$(echo SIDE)";

  it("changes nothing in a session that may: its sandbox is another one, which is read-only", async () => {
    const server = await reviewerThatRuns(CHANGE);
    const more = join(workspace, "..", "more");
    await mkdir(more);
    const flags = ["-s", "workspace-write", "--network", "allowlist:example.com", "--add-dir", more];
    const terminal = await open([...flags, ...onRuntime]);
    terminal.type("! echo of the session > new.txt; echo kept > /tmp/mark\r");
    await terminal.waitForScreen(/✓ exit 0[\s\S]*\n›\s*\n/);
    terminal.type("! rm new.txt\r");
    await terminal.waitForScreen(/rm new.txt[\s\S]*✓ exit 0[\s\S]*\n›\s*\n/);
    terminal.type("/review my change\r");
    await terminal.waitForScreen(/│ three[\s\S]*Read-only file system[\s\S]*\[P1\] OUTSIDE/);
    expect(await readdir(workspace)).not.toContain("new.txt");
    expect(JSON.stringify(turns(server)[0]?.body.input)).toContain("`sandbox_mode` is `read-only`");
    // The session goes on in its own sandbox, with its own rights.
    terminal.type("! cat /tmp/mark; touch later.txt\r");
    await terminal.waitForScreen(/│ kept\n {2}✓ exit 0[\s\S]*\n›\s*\n/);
    expect(await readdir(workspace)).toContain("later.txt");
    await leave(terminal);
  });

  it("sees what a copy-on-write workspace has become, and does not change it", async () => {
    await reviewerThatRuns(CHANGE);
    const terminal = await open(["--workspace", "overlay", ...onRuntime]);
    terminal.type("! echo only in the copy > app.js\r");
    await terminal.waitForScreen(/✓ exit 0[\s\S]*\n›\s*\n/);
    terminal.type("/review my change\r");
    await terminal.waitForScreen(/│ only in the copy[\s\S]*Read-only file system[\s\S]*\[P1\] OUTSIDE/);
    terminal.type("! ls new.txt; cat app.js\r");
    await terminal.waitForScreen(/No such file[^\n]*\n {2}│ only in the copy\n[\s\S]*\n›\s*\n/);
    expect(await readFile(join(workspace, "app.js"), "utf8")).toBe("one\nthree\n");
    await leave(terminal);
  });

  it("is refused where only the session's sandbox has the files", async () => {
    const server = await reviewerThatRuns(CHANGE);
    const terminal = await open(["--workspace", "none", ...onRuntime]);
    terminal.type("/review my change\r");
    await terminal.waitForScreen(/✗ [\s\S]*the session's sandbox[\s\S]*\n›\s*\n/);
    expect(turns(server)).toEqual([]);
    await leave(terminal);
  });

  it("ends with esc, and the session goes on as if it had not been", async () => {
    const server = await reviewerThatRuns("echo it begins; sleep 600");
    const terminal = await open(onRuntime);
    terminal.type("! echo kept > /tmp/mark\r");
    await terminal.waitForScreen(/✓ exit 0[\s\S]*\n›\s*\n/);
    terminal.type("/review my change\r");
    await terminal.waitForScreen(/│ it begins[\s\S]*esc interrupts/);
    terminal.type("\x1b");
    await terminal.waitForScreen(
      /the review was interrupted; nothing of it is kept\n(?![\s\S]*◦ )[\s\S]*\n›\s*\n/,
    );
    terminal.type("! cat /tmp/mark\r");
    await terminal.waitForScreen(/│ kept\n {2}✓ exit 0[\s\S]*\n›\s*\n/);
    terminal.type("do you know\r");
    await terminal.waitForScreen(/● I know of it\./);
    await leave(terminal);
    const input = JSON.stringify(turns(server).at(-1)?.body.input);
    expect(input).toMatch(/cat \/tmp\/mark.*do you know/);
    expect(input).not.toMatch(/user_action|it begins/);
  });

  it("lists branches and commits, and takes them, and anything else, as its argument", async () => {
    const server = await endpoint(reviewer);
    const terminal = await open(onRuntime);
    terminal.type("/review\r");
    await terminal.waitForScreen(/What should be reviewed\?/);
    terminal.type(`branch${ENTER}`);
    await terminal.waitForScreen(
      /Against which branch\?[\s\S]*feature +\d+ seconds? ago[\s\S]*(?:main|master)/,
    );
    terminal.type(`ma${ENTER}`);
    await terminal.waitForScreen(/reviewing what has changed since (?:main|master) was left[\s\S]*Keep two/);
    const base = /since (\w+) was left/.exec(JSON.stringify(turns(server)[0]?.body.input))?.[1] ?? "";
    terminal.type(`/review ${base}~0\r`);
    await terminal.waitForScreen(/reviewing the commit \w+~0/);
    await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/);
    terminal.type("/review the naming of things\r");
    await terminal.waitForScreen(/reviewing something[\s\S]*Keep two/);
    const asked = turns(server).map(({ body }) => JSON.stringify(body.input));
    expect(asked.some((input) => input.includes(`git show '${base}~0'`))).toBe(true);
    expect(asked.some((input) => input.includes("the naming of things"))).toBe(true);
    await leave(terminal);
  });
});

describe("the options of every command", () => {
  it("leave of brig run its message, and of brig exec what the command prints, on both streams", async () => {
    await endpoint(() => respond(messageDone("The message.")));
    const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "" };
    const run = (args: string[]) => brig([...args, ...onRuntime], { cwd: workspace, env });
    const loud = await run(["run", "hello"]);
    expect(loud.stderr).toMatch(/session file/);
    const quiet = await run(["-q", "run", "hello"]);
    expect([quiet.exitCode, quiet.stdout, quiet.stderr]).toEqual([0, "The message.\n", ""]);
    const exec = brig(["exec", "--quiet", ...onRuntime, "--", "sh", "-c", "echo out; echo err >&2; exit 3"], {
      cwd: workspace,
      env,
    });
    const { exitCode, stdout, stderr } = await exec;
    expect([exitCode, stdout, stderr]).toEqual([3, "out\n", "err\n"]);
    const failed = await run(["run", "-q", "-m", "gone", "-c", "model_provider=missing", "hello"]);
    expect([failed.exitCode, failed.stderr]).toEqual([2, expect.stringContaining("missing")]);
  });

  it("colour progress in a pipe where that is asked for, and nothing at a terminal where it is not", async () => {
    await endpoint(() => respond(messageDone("The message.")));
    const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", NO_COLOR: "", FORCE_COLOR: "" };
    const run = (args: string[]) => brig([...args, ...onRuntime], { cwd: workspace, env });
    const command = callDone("one", "exec_command", { cmd: "true" });
    await endpoint(({ body }) =>
      respond(JSON.stringify(body.input).includes("output") ? messageDone("Done.") : command),
    );
    expect((await run(["run", "hello"])).stderr).not.toContain("\x1b[");
    expect((await run(["run", "--color", "always", "hello"])).stderr).toContain("\x1b[");
    const terminal = await open(["--color=never", ...onRuntime]);
    terminal.type("hello\r");
    await terminal.waitForScreen(/● Done\./);
    await leave(terminal);
    const sequences = terminal.shown.split("\x1b[").slice(1);
    expect(sequences.filter((sequence) => /^[\d;]*m/.test(sequence))).toEqual([]);
  });
});

describe("/mcp", () => {
  it("shows the servers with what became of them, and their tools", async () => {
    const folder = await mcpFolders(["plain", "broken"]);
    onTestFinished(() => folder[Symbol.asyncDispose]());
    await endpoint(() => respond(messageDone("Heard.")), {
      config: `
[mcp_servers.plain]
command = "node"
args = ["server.mjs"]
[mcp_servers.broken]
command = "node"
args = ["server.mjs", '{"stderr":"no licence found\\u001b[31m","exitCode":3}']
[mcp_servers.locked]
url = "https://issues.example.org/mcp"
bearer_token_env_var = "NO_SUCH_TOKEN"
[mcp_servers.off]
command = "never-started"
enabled = false
`,
    });
    const terminal = await open(onRuntime, { cwd: folder.cwd });
    terminal.type("hello\r");
    await terminal.waitForScreen(/● Heard\./);
    terminal.type("/mcp\r");
    await terminal.waitForScreen(/MCP servers\n[\s\S]*off +disabled/);
    const shown = terminal.screen.history.join("\n");
    expect(shown).toMatch(/plain +works, with 7 tools\n +own container · node server\.mjs\n +plain__ask – /);
    expect(shown).toMatch(/broken +[^\n]*\n[\s\S]*no licence found/);
    expect(shown).toMatch(/locked +left out: NO_SUCH_TOKEN is not set/);
    expect(terminal.deeds).toEqual([]);
    await leave(terminal);
  });
});
