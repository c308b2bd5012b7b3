import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { realCodex } from "../support/real-codex.js";
import {
  callDone,
  messageDone,
  type ReceivedRequest,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

type Turn = (request: ReceivedRequest) => object[];

const done = messageDone("All done.");
const run =
  (cmd: string): Turn =>
  () => [callDone(`call_${cmd.length}`, "exec_command", { cmd, login: false })];

/** A person's machine with Codex on it, whose model is on loopback. */
async function openPlace(turns: readonly Turn[]) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  let count = 0;
  const server = await startResponsesServer((request) => respond(...(turns[count++]?.(request) ?? [done])));
  onTestFinished(() => server[Symbol.asyncDispose]());
  const [workspace, codexHome, brigHome] = ["workspace", "codex", "brig"].map((name) =>
    join(directory.path, name),
  );
  for (const path of [workspace, codexHome, brigHome]) await mkdir(path ?? "");
  await writeFile(join(codexHome ?? "", "config.toml"), configuration(server.url, workspace ?? ""));
  await writeFile(join(codexHome ?? "", "auth.json"), '{"OPENAI_API_KEY":"sk-of-the-login-0123456789"}');
  await writeFile(join(codexHome ?? "", "AGENTS.md"), "Be brief, says the user's own file.\n");
  const env = {
    PATH: `${dirname(realCodex ?? "")}:${process.env.PATH}`,
    BRIG_HOME: brigHome ?? "",
    CODEX_HOME: codexHome ?? "",
    SCRIPTED_KEY: key,
  };
  return {
    workspace: workspace ?? "",
    brigHome: brigHome ?? "",
    requests: server.requests,
    env,
    wrap: (args: string[]) => brig(["wrap", ...keys, ...args], { cwd: workspace ?? "", env }),
    openTerminal: async (args: string[]) => {
      const terminal = await Terminal.open(["wrap", ...keys, ...args], { cwd: workspace ?? "", env });
      onTestFinished(() => terminal[Symbol.asyncDispose]());
      // A real terminal answers what the program asks it, such as where the cursor is.
      terminal.screen.terminal.onData((answer) => terminal.type(answer));
      return terminal;
    },
  };
}

const keys = ["--env", "SCRIPTED_KEY=key-for-the-agent"];
const key = "key-of-the-person-0123456789abcdef";

function configuration(url: string, workspace: string): string {
  return `model = "gpt-5.6"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "${url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[mcp_servers.tickets]
command = "true"
[mcp_servers.tickets.env]
TICKETS_TOKEN = "token-of-the-tickets"
[projects."${workspace}"]
trust_level = "trusted"
`;
}

async function quit(terminal: Terminal): Promise<void> {
  terminal.type("/quit");
  await terminal.waitForScreen(/\/quit/);
  terminal.type("\r");
}

const exec = ["codex", "exec", "--skip-git-repo-check"];

describe.skipIf(realCodex === null)("brig wrap -- codex", () => {
  it("runs the host's Codex in a sandbox, with its configuration but no credential, and its model's host alone", async () => {
    const place = await openPlace([
      run(
        "echo made > made.txt; pwd; cat ~/.codex/config.toml; ls -a ~/.codex; curl -sS http://other.example 2>&1",
      ),
    ]);
    const { exitCode, stdout, stderr } = await place.wrap(["--", ...exec, "go"]);
    expect(stderr).toContain("bin/codex of this machine, mounted read-only");
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe("All done.\n");
    expect(await readFile(join(place.workspace, "made.txt"), "utf8")).toBe("made\n");
    const output = JSON.stringify(place.requests.at(-1)?.body.input.at(-1));
    expect(output).toContain(place.workspace);
    expect(output).toContain("host.internal");
    expect(output).toContain("[mcp_servers.tickets]");
    expect(output).toContain("AGENTS.md");
    expect(output).not.toContain("token-of-the-tickets");
    expect(output).not.toContain("auth.json");
    expect(output).toContain("no rule of this sandbox's network allow-list allows other.example");
    expect(stderr).toContain("config.toml: mcp_servers.tickets.env.TICKETS_TOKEN looks like a credential");
    expect(JSON.stringify(place.requests[0]?.body)).toContain("Be brief, says the user's own file.");
  });

  it("passes on the exit status of Codex, and standard input and output without a terminal", async () => {
    const place = await openPlace([]);
    const failed = await place.wrap(["--", "codex", "exec", "--no-such-option"]);
    expect(failed.exitCode).toBe(2);
    expect(failed.stderr).toContain("unexpected argument '--no-such-option'");
    const call = await brig(["wrap", ...keys, "--", ...exec, "-"], {
      cwd: place.workspace,
      env: place.env,
      input: "the prompt from standard input",
    });
    expect(call.exitCode, call.stderr).toBe(0);
    expect(JSON.stringify(place.requests[0]?.body.input)).toContain("the prompt from standard input");
  });

  it("shows the screen of Codex, follows the window's size, and gives it ctrl-C", async () => {
    const place = await openPlace([]);
    const terminal = await place.openTerminal(["--", "codex"]);
    await terminal.waitForScreen(/gpt-5\.6/);
    terminal.type("say it");
    await terminal.waitForScreen(/say it/);
    terminal.type("\r");
    await terminal.waitForScreen(/All done\./);
    await terminal.resize(30, 60);
    await terminal.resize(35, 110);
    await terminal.waitForScreen(/All done\./, { withHistory: true });
    terminal.type("typed but not sent");
    await terminal.waitForScreen(/typed but not sent/);
    terminal.type("\x03");
    await expect.poll(() => terminal.screen.rows.join("\n")).not.toContain("typed but not sent");
    await quit(terminal);
    const pid = await terminal.pid();
    const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
    expect(exitStatus).toBe(0);
    expect(settingsAfter).toBe(settingsBefore);
    expect(await containersOf(pid)).toEqual([]);
  });

  it("resumes a named session with its conversation, lists and removes it", async () => {
    const place = await openPlace([]);
    const first = await place.wrap(["--name", "work", "--", ...exec, "remember the word heron"]);
    expect(first.exitCode, first.stderr).toBe(0);
    const second = await place.wrap(["--resume", "work", "--", ...exec, "resume", "--last", "and now?"]);
    expect(second.exitCode, second.stderr).toBe(0);
    expect(JSON.stringify(place.requests.at(-1)?.body.input)).toMatch(/heron.*All done\..*and now\?/);
    const terminal = await place.openTerminal(["--resume", "work"]);
    await terminal.waitForScreen(/and now\?/, { withHistory: true });
    const busy = await place.wrap(["--resume", "work"]);
    expect(busy.stderr).toContain("the session work is in use by process");
    expect(JSON.parse((await place.wrap(["--list", "--json"])).stdout)).toEqual([
      expect.objectContaining({ name: "work", isRunning: true, agent: "codex", directory: place.workspace }),
    ]);
    await quit(terminal);
    expect((await terminal.end()).exitStatus).toBe(0);
    const home = join(place.brigHome, "wrapped", "work");
    expect(existsSync(home)).toBe(true);
    expect((await place.wrap(["--remove", "work"])).exitCode).toBe(0);
    expect(existsSync(home)).toBe(false);
    expect((await place.wrap(["--resume", "work"])).stderr).toContain('there is no wrapped session "work"');
  });
});
