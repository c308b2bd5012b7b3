import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { request as sendRequest } from "node:http";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { keepChatGptLogin } from "../support/chatgpt-login.js";
import { brig, containersOf } from "../support/cli.js";
import { accountId, clientId, openIdProvider } from "../support/openid-provider.js";
import { realCodex, whyNoCodex } from "../support/real-codex.js";
import {
  callDone,
  messageDone,
  type ReceivedRequest,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { Terminal } from "../support/terminal.js";
import { tlsServer } from "../support/tls-server.js";

const key = "key-of-the-person-0123456789abcdef";

type Turn = (request: ReceivedRequest) => object[];

const done = messageDone("All done.");
const run =
  (cmd: string): Turn =>
  () => [callDone(`call_${cmd.length}`, "exec_command", { cmd, login: false, yield_time_ms: 30_000 })];

/** Codex answers a call before its command has ended, if that takes longer than it waits. */
const untilItEnds = Array.from(
  { length: 9 },
  (_, index): Turn =>
    (request) => {
      const session = /session ID (\d+)/.exec(JSON.stringify(request.body.input.at(-1)))?.[1];
      const more = { session_id: Number(session), chars: "", yield_time_ms: 30_000 };
      return session === undefined ? [done] : [callDone(`wait_${index}`, "write_stdin", more)];
    },
);

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
    url: server.url,
    requests: server.requests,
    configure: async (text: string) => await writeFile(join(codexHome ?? "", "config.toml"), text),
    write: async (name: string, text: string) => {
      const path = join(directory.path, name);
      await writeFile(path, text);
      return path;
    },
    env,
    wrap: (args: string[]) => brig(["wrap", ...args], { cwd: workspace ?? "", env }),
    openTerminal: async (args: string[]) => {
      const terminal = await Terminal.open(["wrap", ...args], { cwd: workspace ?? "", env });
      onTestFinished(() => terminal[Symbol.asyncDispose]());
      // A real terminal answers what the program asks it, such as where the cursor is.
      terminal.screen.terminal.onData((answer) => terminal.type(answer));
      return terminal;
    },
  };
}

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

const idToken = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.sig`;

/** With such a login Codex would compress its requests in a way that Node 20 cannot undo. */
const readable = "[features]\nenable_request_compression = false\n";

/** What Codex keeps of a login with ChatGPT. */
const chatGptFile = JSON.stringify({
  OPENAI_API_KEY: null,
  tokens: {
    id_token: idToken({ "https://api.openai.com/auth": { chatgpt_account_id: "account-of-the-person" } }),
    access_token: "token-of-the-person",
    refresh_token: "refresh-of-it",
    account_id: "account-of-the-person",
  },
  last_refresh: new Date().toISOString(),
});

async function quit(terminal: Terminal): Promise<void> {
  terminal.type("/quit");
  await terminal.waitForScreen(/\/quit/);
  terminal.type("\r");
}

/** HTTPS before a server of HTTP, with a certificate of an authority that only this test knows. */
async function openTlsFront(url: string) {
  const server = await tlsServer("host.internal", (incoming, response) => {
    const { method, headers } = incoming;
    // Codex asks for a web socket and for the list of models first, and does without.
    if (method !== "POST") return void response.writeHead(404).end();
    const passed = sendRequest(new URL(incoming.url ?? "/", url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(passed.on("error", () => response.destroy()));
  });
  return {
    url: `https://host.internal:${server.port}/v1`,
    authority: server.authority,
    [Symbol.asyncDispose]: async () => await server[Symbol.asyncDispose](),
  };
}

/** Codex keeps variables with the names of keys from its commands, unless it is told otherwise. */
const showsVariables = '[shell_environment_policy]\ninherit = "all"\nignore_default_excludes = true\n';

/** Its patterns do not match themselves. */
const probe = String.raw`search() {
  grep -alE "$1" /proc/[0-9]*/environ /proc/[0-9]*/cmdline
  grep -rlaE "$1" /tmp /home /run /dev/shm /etc "$PWD"
  for process in /proc/[0-9]*; do
    grep " rw" $process/maps | while read -r range _; do
      from=$((16#$(echo $range | cut -d- -f1))); to=$((16#$(echo $range | cut -d- -f2)))
      dd if=$process/mem bs=4096 skip=$((from / 4096)) count=$(((to - from) / 4096)) | grep -qaE "$1" && echo "$process memory"
    done
  done
}
printf %s "$SCRIPTED_KEY" > /tmp/control
(sleep 60; : $SCRIPTED_KEY) & sleeper=$!
key=$(search 'KEY_START[KEY_END]' 2>/dev/null)
hidden=$(printf %s "$SCRIPTED_KEY" | sed 's/\(.*\)\(.\)/\1[\2]/')
placeholder=$(search "$hidden" 2>/dev/null)
kill $sleeper
printf '%s--\n%s\n' "$key" "$placeholder" > found.txt`
  .replace("KEY_START", key.slice(0, -1))
  .replace("KEY_END", key.slice(-1));

const exec = ["codex", "exec", "--skip-git-repo-check"];

describe.skipIf(realCodex === null)(withReason("brig wrap -- codex", whyNoCodex), () => {
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
    expect(place.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill(`Bearer ${key}`),
    );
    expect(stderr).toContain("SCRIPTED_KEY stays outside, and is sent to host.internal:");
    expect(JSON.stringify(place.requests[0]?.body)).toContain("Be brief, says the user's own file.");
  });

  it("sends the key over TLS, and nobody in the sandbox can find it", async () => {
    const place = await openPlace([run(probe), ...untilItEnds]);
    await using front = await openTlsFront(place.url);
    await place.configure(configuration(front.url, place.workspace) + showsVariables);
    const env = { ...place.env, NODE_EXTRA_CA_CERTS: await place.write("authority.pem", front.authority) };
    const { exitCode, stderr } = await brig(["wrap", "--name", "work", "--", ...exec, "go"], {
      cwd: place.workspace,
      env,
    });
    expect(exitCode, stderr).toBe(0);
    const sent = place.requests.map(({ headers }) => headers.authorization);
    expect(new Set(sent)).toEqual(new Set([`Bearer ${key}`]));
    const found = await readFile(join(place.workspace, "found.txt"), "utf8");
    const [ofKey = "", ofPlaceholder = ""] = found.split("--\n");
    expect(ofKey).toBe("");
    expect(ofPlaceholder).toMatch(/\/environ\n/);
    expect(ofPlaceholder).toMatch(/ memory\n/);
    expect(ofPlaceholder).toContain("/tmp/control");
    const kept = await execa("grep", ["-rlaF", key, place.brigHome], { reject: false });
    expect(kept.stdout).toBe("");
  });

  it("logs in to OpenAI with a placeholder of the key that Codex is logged in with outside", async () => {
    const place = await openPlace([run("cat ~/.codex/auth.json")]);
    await using front = await openTlsFront(place.url);
    await place.configure(`model = "gpt-5.6"\nopenai_base_url = "${front.url}"\n`);
    const env = { ...place.env, NODE_EXTRA_CA_CERTS: await place.write("authority.pem", front.authority) };
    const { exitCode, stderr } = await brig(["wrap", "--", ...exec, "go"], { cwd: place.workspace, env });
    expect(exitCode, stderr).toBe(0);
    const sent = place.requests.map(({ headers }) => headers.authorization);
    expect(new Set(sent)).toEqual(new Set(["Bearer sk-of-the-login-0123456789"]));
    const output = JSON.stringify(place.requests.at(-1)?.body.input.at(-1));
    expect(output).toContain("OPENAI_API_KEY");
    expect(output).not.toContain("of-the-login");
  });

  it("works with a login with ChatGPT, whose token and account stay outside and go to the model alone", async () => {
    const search =
      'curl -sS -o /dev/null -w "other: %{http_code}\\n" -H "Authorization: Bearer $CHATGPT_ACCESS_TOKEN" "$FRONT/backend-api/conversations";' +
      ' cat ~/.codex/auth.json; env; grep -rlE "token-of-the-[p]erson|account-of-the-[p]erson" ~ /tmp "$PWD" && echo leaked';
    const place = await openPlace([run(search)]);
    await using front = await openTlsFront(place.url);
    await place.configure(
      `model = "gpt-5.6"\nopenai_base_url = "${front.url}"\n[shell_environment_policy]\nignore_default_excludes = true\n${readable}`,
    );
    await place.write("codex/auth.json", chatGptFile);
    const env = { ...place.env, NODE_EXTRA_CA_CERTS: await place.write("authority.pem", front.authority) };
    const more = ["--env", `FRONT=${new URL(front.url).origin}`];
    const ended = await brig(["wrap", ...more, "--", ...exec, "go"], { cwd: place.workspace, env });
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stdout).toBe("All done.\n");
    const sent = place.requests.map(({ headers }) => [headers.authorization, headers["chatgpt-account-id"]]);
    expect(new Set(sent.flat())).toEqual(new Set(["Bearer token-of-the-person", "account-of-the-person"]));
    const output = JSON.stringify(place.requests.at(-1)?.body.input.at(-1));
    expect(output).toContain("other: 403");
    expect(output).toContain("auth_mode");
    expect(output).toContain("CHATGPT_ACCESS_TOKEN=");
    expect(output).not.toMatch(/of-the-person|refresh-of-it|leaked/);
    expect(ended.stderr).toContain("CHATGPT_ACCESS_TOKEN stays outside");
    expect(ended.stderr).toContain("the login with ChatGPT is Codex's own");
  });

  it("works with the login of brig login, which is renewed before it is used", async () => {
    const place = await openPlace([]);
    await using front = await openTlsFront(place.url);
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, place.brigHome);
    const file = join(place.brigHome, "auth.json");
    const stored = JSON.parse(await readFile(file, "utf8"));
    const expired = { ...stored.tokens, expires_at: new Date(Date.now() - 1000).toISOString() };
    await writeFile(file, JSON.stringify({ ...stored, tokens: expired }));
    await place.write(
      "brig/config.toml",
      `[oauth]\nissuer = "${provider.issuer}"\nclient_id = "${clientId}"\n`,
    );
    await place.configure(`model = "gpt-5.6"\nopenai_base_url = "${front.url}"\n${readable}`);
    await place.write("codex/auth.json", chatGptFile);
    const env = { ...place.env, NODE_EXTRA_CA_CERTS: await place.write("authority.pem", front.authority) };
    const ended = await brig(["wrap", "--", ...exec, "go"], { cwd: place.workspace, env });
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stderr).toContain("that of brig login, which brig renews");
    const { tokens } = JSON.parse(await readFile(file, "utf8"));
    expect(tokens.access_token).not.toBe(stored.tokens.access_token);
    expect(provider.requests.get("POST /token")).toBe(2);
    expect(place.requests.at(-1)?.headers.authorization).toBe(`Bearer ${tokens.access_token}`);
    expect(place.requests.at(-1)?.headers["chatgpt-account-id"]).toBe(accountId);
  });

  it("says what logs in where nothing does, and waits until that has been read", async () => {
    const place = await openPlace([]);
    await place.configure(`[projects."${place.workspace}"]\ntrust_level = "trusted"\n`);
    await rm(join(place.env.CODEX_HOME, "auth.json"));
    const piped = await place.wrap(["--", "codex", "--version"]);
    expect(piped.exitCode, piped.stderr).toBe(0);
    expect(piped.stderr).toMatch(/no login with ChatGPT\n[\s\S]*\n\n {2}brig login\n/);
    const terminal = await place.openTerminal(["--", "codex"]);
    await terminal.waitForScreen(/brig login[\s\S]*Enter starts codex all the same/);
    terminal.type("\r");
    await terminal.waitForScreen(/Sign in with ChatGPT/i);
    terminal.type("\x03");
    await terminal.end();
    const other = await place.openTerminal(["--", "codex"]);
    await other.waitForScreen(/Enter starts codex all the same/);
    other.type("\x03");
    const pid = await other.pid();
    expect((await other.end()).exitStatus).not.toBe(0);
    expect(await containersOf(pid)).toEqual([]);
  });

  it("asks once whether a folder is trusted, and believes no file of the sandbox about another one", async () => {
    const forged = (folder: string) =>
      `printf '[projects."${folder}"]\\ntrust_level = "trusted"\\n' >> ~/.codex/config.toml; mkdir -p ~/.brig; ` +
      `echo '{"folders":["${folder}"]}' | tee ~/.brig/trusted-folders.json trusted-folders.json`;
    const place = await openPlace([]);
    await place.configure(configuration(place.url, "/somewhere/else"));
    const openAt = async (cwd: string) => {
      const terminal = await Terminal.open(["wrap", "--", "codex"], { cwd, env: place.env });
      onTestFinished(() => terminal[Symbol.asyncDispose]());
      terminal.screen.terminal.onData((answer) => terminal.type(answer));
      return terminal;
    };
    const refused = await openAt(place.workspace);
    await refused.waitForScreen(/Do you trust what is in/);
    refused.type("\r");
    // Then Codex asks itself.
    await refused.waitForScreen(/Trust this folder\?/);
    await refused.closeWindow();
    const first = await openAt(place.workspace);
    await first.waitForScreen(/Do you trust what is in/);
    first.type("y\r");
    await first.waitForScreen(/gpt-5\.6/);
    expect(first.screen.rows.join("\n")).not.toContain("Trust this folder?");
    await quit(first);
    expect((await first.end()).exitStatus).toBe(0);
    const second = await openAt(place.workspace);
    await second.waitForScreen(/gpt-5\.6/);
    expect(second.screen.rows.join("\n")).not.toMatch(/trust/i);
    await quit(second);
    await second.end();
    const other = join(place.workspace, "other");
    await mkdir(other);
    expect(
      (await brig(["exec", "--", "sh", "-c", forged(other)], { cwd: place.workspace, env: place.env }))
        .exitCode,
    ).toBe(0);
    const third = await openAt(other);
    await third.waitForScreen(/Do you trust what is in [^?]*other\?/);
    third.type("\x03");
    await third.end();
  });

  it("passes on the exit status of Codex, and standard input and output without a terminal", async () => {
    const place = await openPlace([]);
    const failed = await place.wrap(["--", "codex", "exec", "--no-such-option"]);
    expect(failed.exitCode).toBe(2);
    expect(failed.stderr).toContain("unexpected argument '--no-such-option'");
    const call = await brig(["wrap", "--", ...exec, "-"], {
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
