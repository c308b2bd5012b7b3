import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { containersOf } from "../support/cli.js";
import { commitFile, createRepository } from "../support/git-repositories.js";
import { pngPicture } from "../support/pictures.js";
import {
  callDone,
  created,
  messageDone,
  type ReceivedRequest,
  type Reply,
  respond,
  startResponsesServer,
  textDelta,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];

/** The rows of the table of what is typed in a conversation: what is typed in Codex, and here. */
async function rowsOfPage(): Promise<{ there: string; here: string }[]> {
  const page = await readFile(join(import.meta.dirname, "../../docs/from-codex.md"), "utf8");
  const [, section = ""] = page.split("## In a conversation\n");
  const [table = ""] = /(?:^\|.*\n)+/m.exec(section) ?? [];
  return table
    .split("\n")
    .slice(2, -1)
    .map((row) => {
      const [there = "", here = ""] = row.replace(/^\| /, "").split(" | ");
      return { there, here };
    });
}

/** What is typed, and what must be on the screen before anything else is typed. */
type Typed = readonly [keys: string, shown: RegExp];

const ENTER = "\r";
const ESC = "\x1b";
/** Empties the draft. */
const CLEAR = "\x15";
const EMPTY = /^›\s*$/m;
/** Nothing runs, and nothing is typed. */
const IDLE = /^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/;
const paste = (text: string) => `\x1b[200~${text}\x1b[201~`;

const finding = {
  ...{ title: "[P1] Keep two", body: "It breaks.", confidence_score: 0.9, priority: 1 },
  code_location: { absolute_file_path: "/app.js", line_range: { start: 1, end: 1 } },
};
const review = {
  ...{ findings: [finding], overall_correctness: "patch is incorrect", overall_confidence_score: 0.8 },
  overall_explanation: "It has a fault.",
};

/** Hangs when it is asked to work, changes a file when it is asked to write, and reviews. */
function answer({ url, body }: ReceivedRequest): Reply {
  if (url.endsWith("/models"))
    return { kind: "status", status: 200, body: { data: [{ id: "gpt-5-test" }, { id: "gpt-6-big" }] } };
  const items = (body.input ?? []) as { role?: string; type?: string }[];
  const last = JSON.stringify(items.findLast(({ role }) => role === "user") ?? "");
  if (JSON.stringify(body.text ?? {}).includes("findings"))
    return respond(messageDone(JSON.stringify(review)));
  if (last.includes("work for long"))
    return { kind: "stream", events: [created(), textDelta("Half")], ending: "hang" };
  if (last.includes("write it") && items.at(-1)?.type !== "function_call_output")
    return respond(callDone("write", "exec_command", { cmd: "echo fresh >> app.js" }));
  return respond(messageDone("Heard."));
}

/** Each row of the table, by what is typed in Codex. */
const entries: Readonly<Record<string, (place: { folder: string }) => readonly Typed[]>> = {
  "`/` and Tab": () => [
    ["/", /^› \/\n▸ \/status +show this session's settings/m],
    ["mode\t", /^› \/mode \n {2}read-only +read the workspace[\s\S]*\n {2}danger-full-access/m],
    [CLEAR, EMPTY],
  ],
  "`@parser`": () => [
    ["see @parser", /^▸ "?(?:src\/parser\.ts|parser notes\.md)/m],
    [`${CLEAR}see @notes\t`, /^› see "parser notes\.md"\s*$/m],
    [CLEAR, EMPTY],
  ],
  "`!git status`": () => [[`!git status${ENTER}`, /\$ git status[\s\S]*│ +src\/\n[\s\S]*✓ exit 0/]],
  Esc: () => [
    [`work for long${ENTER}`, /● Half/],
    [`and then${ENTER}`, /next: and then/],
    [ESC, /! interrupted[\s\S]*^› and then\s*$/m],
    [CLEAR, EMPTY],
  ],
  "Esc Esc": () => [
    [ESC, /press esc again to edit the last message/],
    [ESC, /^› work for long\s*\n\S/m],
    [`${CLEAR}hello${ENTER}`, /› hello[\s\S]*● Heard\./],
  ],
  "a paste of many lines": () => [
    [`read ${paste("a line\r".repeat(300))}`, /^› read \[300 lines pasted\]\s*$/m],
    [ENTER, /^› read \[300 lines pasted\]\s*\n[\s\S]*● Heard\./m],
  ],
  "the path of a picture, pasted or dropped": ({ folder }) => [
    [paste(join(folder, "shot.png")), /^› \[picture shot\.png 640x480\]\s*$/m],
    [ENTER, /^› \[picture shot\.png 640x480\][\s\S]*● Heard\./m],
  ],
  "`/model`": () => [
    [`/model${ENTER}`, /Which model\?\n› gpt-5-test +present/],
    [ESC, /^(?![\s\S]*Which model)[\s\S]*\n›\s*\n/],
    [`/model gpt-6-big low${ENTER}`, /gpt-6-big with reasoning effort low from now on/],
  ],
  "`/permissions`": () => [
    [`/mode read-only${ENTER}`, /read-only from now on/],
    [`/mode workspace-write${ENTER}`, /Change from read-only to workspace-write\?[\s\S]*y {4}yes/],
    ["y", /workspace-write from now on[\s\S]*^›\s*\nworkspace-write/m],
  ],
  "`/new`": () => [[`/new${ENTER}`, /to continue: brig resume [0-9a-f-]{36}\n[\s\S]*brig \d[\s\S]*\n›\s*\n/]],
  "`/clear`": () => [
    [`of the cleared one${ENTER}`, /of the cleared one[\s\S]*● Heard\./],
    [`/clear${ENTER}`, /^(?![\s\S]*of the cleared one)[\s\S]*to continue: brig resume[\s\S]*\n›\s*\n/],
  ],
  "`/resume`": () => [
    [`/resume${ENTER}`, /Which session of work\?[\s\S]*› +now .*of the cleared one\n/],
    [ENTER, /resumed[\s\S]*› of the cleared one[\s\S]*● Heard\./],
  ],
  "`/review`": () => [
    [`/review${ENTER}`, /What should be reviewed\?\n› what is not committed/],
    [ENTER, /reviewing what is not committed[\s\S]*● It has a fault\.[\s\S]*\[P1\] Keep two/],
    [`/review HEAD${ENTER}`, /reviewing the commit HEAD/],
    ["", IDLE],
    [`/review the naming of things${ENTER}`, /reviewing something/],
  ],
  "`/diff`": () => [
    [`write it${ENTER}`, /› write it[\s\S]*✓ exit 0[\s\S]*● Heard\./],
    [`/diff${ENTER}`, /changes that your files do not have[\s\S]*\+fresh/],
  ],
  "`/compact`": () => [[`/compact${ENTER}`, /summarised: about \d+ tokens became \d+/]],
  "`/mcp`": () => [[`/mcp${ENTER}`, /MCP servers[\s\S]*off +disabled/]],
  "`/status`": () => [[`/status${ENTER}`, /model +gpt-\S+ \(one\)[\s\S]*mode +workspace-write/]],
  "`/quit`": () => [["/quit", /^› \/quit\n▸ \/quit/m]],
};

it("everything that docs/from-codex.md says is typed in a conversation works, in the order of the table", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const folder = directory.path;
  const [workspace, home] = [join(folder, "work"), join(folder, "home")];
  await mkdir(join(workspace, "src"), { recursive: true });
  await mkdir(home);
  await createRepository(workspace);
  await commitFile(workspace, "app.js", "one\n");
  await writeFile(join(workspace, "src/parser.ts"), "");
  await writeFile(join(workspace, "parser notes.md"), "");
  await writeFile(join(folder, "shot.png"), pngPicture({ width: 640, height: 480 }));
  const server = await startResponsesServer(answer);
  onTestFinished(() => server[Symbol.asyncDispose]());
  const config = `model = "gpt-5-test"
model_provider = "one"
[model_providers.one]
base_url = "${server.url}"
[mcp_servers.off]
command = "never-started"
enabled = false
`;
  await writeFile(join(home, "config.toml"), config);
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", NO_COLOR: "" };
  const terminal = await Terminal.open(["--workspace", "overlay", ...onRuntime], { cwd: workspace, env });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  await terminal.waitForScreen(EMPTY);
  const rows = await rowsOfPage();
  expect(rows.map(({ there }) => there)).toEqual(Object.keys(entries));
  for (const { there, here } of rows) {
    const typed = entries[there]?.({ folder }) ?? [];
    const command = /^`([/!@]\w+)/.exec(here)?.[1] ?? "";
    expect(typed.map(([keys]) => keys).join(""), there).toContain(command);
    for (const [keys, shown] of typed) {
      // What is typed before anybody can have read a question is no answer to it.
      if (keys === "y") await pause(600);
      terminal.type(keys);
      await terminal.waitForScreen(shown).catch((error: Error) => {
        throw new Error(`${there}: ${JSON.stringify(keys)}: ${error.message}`, { cause: error });
      });
    }
    if (there !== "`/quit`") await terminal.waitForScreen(IDLE);
  }
  terminal.type(ENTER);
  const outcome = await terminal.end();
  expect([outcome.exitStatus, outcome.settingsAfter]).toEqual([0, outcome.settingsBefore]);
  expect(await containersOf(await terminal.pid())).toEqual([]);
  const sent = server.requests.map(({ body }) => JSON.stringify(body.input ?? []));
  expect(sent.some((input) => input.includes("a line\\n".repeat(299)))).toBe(true);
  expect(sent.some((input) => input.includes("data:image/png;base64"))).toBe(true);
}, 600_000);
