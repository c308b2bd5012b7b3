import { access, chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { keepChatGptLogin } from "../support/chatgpt-login.js";
import { type BrigOptions, brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { CookieBrowser } from "../support/cookie-browser.js";
import { call, testEngine } from "../support/engine.js";
import { accountId, clientId, type OpenIdProvider, openIdProvider } from "../support/openid-provider.js";
import { callDone, messageDone, respond, startResponsesServer } from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const key = "sk-canary-of-this-test";
let folder: string;
let elsewhere = "";
let home: string;
let file: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  home = join(folder, "home");
  // A workspace that holds a login is refused.
  elsewhere = join(folder, "elsewhere");
  await mkdir(elsewhere);
  file = join(home, "auth.json");
});

/** Nothing of this machine's own configuration or keys is used. */
function surroundings(): Record<string, string> {
  return { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" };
}

function run(args: string[], options: BrigOptions = {}) {
  return brigHere(args, ofTheTest(options));
}

/** The same, as a process. */
function start(args: string[], options: BrigOptions = {}) {
  return brig(args, ofTheTest(options));
}

function ofTheTest(options: BrigOptions): BrigOptions {
  return { cwd: elsewhere, ...options, env: { ...surroundings(), ...options.env } };
}

/** `-c` for a provider of the test. */
function at({ issuer }: OpenIdProvider): string[] {
  return ["-c", `oauth.issuer=${issuer}`, "-c", `oauth.client_id=${clientId}`];
}

/** The address that brig shows, as soon as it shows it. */
async function shownUrl(login: ReturnType<typeof brig>): Promise<string> {
  let shown = "";
  login.stderr?.on("data", (chunk) => {
    shown += chunk;
  });
  return await eventually(async () => {
    const url = /^(http\S+)\n\n/m.exec(shown)?.[1];
    if (url === undefined) throw new Error(`no address was shown:\n${shown}`);
    return url;
  });
}

function login(provider: OpenIdProvider, args: string[] = []) {
  return start(["login", ...at(provider), "--port", "0", ...args]);
}

describe("brig login --api-key", () => {
  it("keeps the key that is piped in, for nobody else to read", async () => {
    const done = await start(["login", "--api-key"], { input: `${key}\n` });
    expect(done).toMatchObject({ exitCode: 0, stdout: "", stderr: "The API key is stored.\n" });
    expect(JSON.parse(await readFile(file, "utf8")).OPENAI_API_KEY).toBe(key);
    expect(((await stat(home)).mode & 0o777).toString(8)).toBe("700");
    expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
    expect(await readdir(home)).toEqual(["auth.json"]);
  });

  it("is spelled as Codex spells it too", async () => {
    expect((await run(["login", "--with-api-key"], { input: key })).exitCode).toBe(0);
    expect((await run(["login", "status"])).exitCode).toBe(0);
  });

  it.each([
    ["nothing", ""],
    ["two lines", `${key}\n${key}\n`],
    ["too much", "x".repeat(100_000)],
  ])("refuses %s, and keeps nothing", async (_name, input) => {
    const done = await run(["login", "--api-key"], { input });
    expect(done.exitCode).toBe(2);
    expect(done.stderr).not.toContain(key);
    await expect(access(file)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("ends when it is interrupted while it reads", async () => {
    const waiting = start(["login", "--api-key"], { holdsInputOpen: true });
    await eventually(() => expectToRead(waiting.pid));
    waiting.kill("SIGINT");
    expect((await waiting).exitCode).toBe(130);
  });

  it("asks at a terminal, shows nothing of the key, and puts the terminal back", async () => {
    stubSurroundings();
    await using terminal = await Terminal.open(["login", "--api-key"], { cwd: folder });
    await terminal.waitFor(/API key: /);
    terminal.type(`${key}X\x7f\r`);
    const { exitStatus, settingsBefore, settingsAfter } = await terminal.end();
    expect([exitStatus, settingsAfter]).toEqual([0, settingsBefore]);
    expect(terminal.shown).not.toContain("canary");
    expect(terminal.shown).toContain("The API key is stored.");
    expect(JSON.parse(await readFile(file, "utf8")).OPENAI_API_KEY).toBe(key);
  });

  it.each([
    ["ctrl-C", "\x03"],
    ["ctrl-D", "\x04"],
  ])("ends with 130 at %s, the terminal as it was", async (_name, typed) => {
    stubSurroundings();
    await using terminal = await Terminal.open(["login", "--api-key"], { cwd: folder });
    await terminal.waitFor(/API key: /);
    terminal.type(typed);
    const { exitStatus, settingsBefore, settingsAfter } = await terminal.end();
    expect([exitStatus, settingsAfter]).toEqual([130, settingsBefore]);
    await expect(access(file)).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("brig login", () => {
  it("logs in through a browser; status tells who; logout ends it here and at the issuer", async () => {
    await using provider = await openIdProvider();
    const process = login(provider);
    const page = await provider.logIn(await shownUrl(process));
    expect(page.status).toBe(200);
    const done = await process;
    expect(done).toMatchObject({ exitCode: 0, stdout: "" });
    expect(done.stderr).toMatch(/You are logged in as ada@example\.test\.\n$/);
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({
      auth_mode: "chatgpt",
      OPENAI_API_KEY: null,
      tokens: { account_id: accountId },
    });

    const status = await run(["login", "status"]);
    expect(status.exitCode).toBe(0);
    expect(status.stdout).toContain("  email: ada@example.test\n");
    const told = JSON.parse((await run(["login", "status", "--json"])).stdout);
    expect(told).toMatchObject({ kind: "chatgpt", source: "auth.json", stored: { accountId, plan: "plus" } });
    for (const secret of await secrets()) {
      expect(done.stderr + status.stdout + JSON.stringify(told)).not.toContain(secret);
    }

    const out = await start(["logout", ...at(provider)]);
    expect(out).toMatchObject({ exitCode: 0, stderr: "You are logged out.\n" });
    expect(provider.requests.get("POST /token/revocation")).toBe(1);
    expect(await run(["login", "status"])).toMatchObject({ exitCode: 1, stdout: "nobody is logged in\n" });
    expect(await readdir(home)).toEqual([]);
  });

  it("logs in with a code that is entered in a browser elsewhere", async () => {
    await using provider = await openIdProvider({
      tamper: ({ path, body }) =>
        path === "/device/auth" ? JSON.stringify({ ...JSON.parse(body), interval: 0.2 }) : body,
    });
    const process = start(["login", "--device-auth", ...at(provider)]);
    let shown = "";
    process.stderr?.on("data", (chunk) => {
      shown += chunk;
    });
    const [url = "", code = ""] = await eventually(async () => {
      const told = /^(http\S+)\n\nand enter this code:\n\n(\S+)\n/m.exec(shown);
      if (told === null) throw new Error(`no code was shown:\n${shown}`);
      return told.slice(1);
    });
    expect((await new CookieBrowser().enterCode(url, code)).status).toBe(200);
    expect(await process).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await run(["login", "status"])).stdout).toContain("ada@example.test");
  });

  it("ends with 2 when the person says no", async () => {
    await using provider = await openIdProvider();
    const process = login(provider);
    await provider.refuse(await shownUrl(process));
    const { exitCode, stderr } = await process;
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/refuses: access_denied.*\nhint: log in again: brig login\n$/);
  });

  it("ends with 130 at ctrl-C, and frees its port", async () => {
    await using provider = await openIdProvider();
    const process = login(provider);
    const redirect = new URL(await shownUrl(process)).searchParams.get("redirect_uri") ?? "";
    expect((await fetch(redirect)).status).toBe(400);
    process.kill("SIGINT");
    expect((await process).exitCode).toBe(130);
    await expect(fetch(redirect)).rejects.toThrow("fetch failed");
  });

  it("ends with 2 when nobody comes", async () => {
    await using provider = await openIdProvider();
    const done = await login(provider, ["--timeout", "1s"]);
    expect(done.exitCode).toBe(2);
    expect(done.stderr).toContain("nobody logged in within 1 seconds");
  });

  it("takes a port that Codex's client may come back to at OpenAI, where one is free", async () => {
    await using provider = await openIdProvider();
    const process = start(["login", ...at(provider), "--timeout", "2s"]);
    const { stderr } = await process;
    expect(stderr).toMatch(/localhost%3A145[57]%2Fauth|port 1455 and 1457 of this machine/);
  });

  it("opens the browser of a desktop, but not when told not to, and not over SSH", async () => {
    await using provider = await openIdProvider();
    stubSurroundings();
    const opened = join(folder, "opened");
    const tools = join(folder, "tools");
    await mkdir(tools);
    await writeFile(
      join(tools, "xdg-open"),
      `#!/bin/sh\nprintf '%s' "$1" > ${opened}.part; mv ${opened}.part ${opened}\n`,
    );
    await chmod(join(tools, "xdg-open"), 0o755);
    vi.stubEnv("PATH", `${tools}:${process.env.PATH}`);
    vi.stubEnv("DISPLAY", ":99");
    for (const [args, ssh] of [
      [["--no-browser"], ""],
      [[], "1.2.3.4 5 6.7.8.9 22"],
    ] as const) {
      vi.stubEnv("SSH_CONNECTION", ssh);
      await using terminal = await Terminal.open(["login", ...at(provider), "--port", "0", ...args], {
        cwd: folder,
      });
      await terminal.waitFor(/prompt=consent/);
      await sleep(300);
      terminal.type("\x03");
      expect((await terminal.end()).exitStatus).toBe(130);
      await expect(access(opened)).rejects.toMatchObject({ code: "ENOENT" });
    }
    vi.stubEnv("SSH_CONNECTION", "");
    await using terminal = await Terminal.open(["login", ...at(provider), "--port", "0"], { cwd: folder });
    const url = await eventually(() => readFile(opened, "utf8"));
    expect((await provider.logIn(url)).status).toBe(200);
    expect((await terminal.end()).exitStatus).toBe(0);
  });

  it("says that a key in the environment comes before the login", async () => {
    const done = await run(["login", "--api-key"], { input: key, env: { OPENAI_API_KEY: "sk-other" } });
    expect(done.stderr).toContain("OPENAI_API_KEY is set and is used instead of this login");
    const status = await run(["login", "status"], { env: { OPENAI_API_KEY: "sk-other" } });
    expect(status.stdout).toMatch(
      /^logged in with the API key in OPENAI_API_KEY\nalso stored, but not used while OPENAI_API_KEY is set: /,
    );
  });

  it.each([
    [["--port", "99999"], "It must be a port, 0 to 65535"],
    [["--timeout", "soon"], "It must be seconds, or a number with ms, s, m or h"],
    [["--api-key", "--device-auth"], "cannot be combined"],
    [["-c", "oauth.issuer=https://a.example"], "oauth.client_id is missing"],
    [["-c", "oauth.issuer=http://a.example", "-c", "oauth.client_id=x"], "is not an https URL"],
  ])("refuses %j", async (args, reason) => {
    const done = await run(["login", ...args]);
    expect(done.exitCode).toBe(2);
    expect(done.stderr).toContain(reason);
  });
});

describe("a run with a login", () => {
  it("renews the token that the endpoint refuses, and goes on", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const [before] = await secrets();
    await using server = await startResponsesServer([
      { kind: "status", status: 401, body: { error: { message: "token expired" } } },
      respond(messageDone("hello")),
    ]);
    const done = await run(["run", ...at(provider), "-c", `chatgpt_base_url=${server.url}`, "hi"]);
    expect(done).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    const [after] = await secrets();
    expect(after).not.toBe(before);
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${before}`,
      `Bearer ${after}`,
    ]);
    expect(server.requests[1]?.headers["chatgpt-account-id"]).toBe(accountId);
  });

  it("that is interrupted while its token is renewed does not lose the login", async () => {
    await using provider = await openIdProvider({ delayMs: { "/token": 1000 } });
    await keepChatGptLogin(provider, home);
    const [before] = await secrets();
    await using server = await startResponsesServer([{ kind: "status", status: 401 }]);
    const running = start(["run", ...at(provider), "-c", `chatgpt_base_url=${server.url}`, "hi"]);
    // The issuer has given out a new token and spent the old one, and its answer is still on its way.
    await eventually(async () => expect(provider.requests.get("POST /token")).toBe(2));
    await sleep(200);
    running.kill("SIGINT");
    expect((await running).exitCode).toBe(130);
    expect((await secrets())[0]).not.toBe(before);
    expect((await readdir(home)).filter((name) => name.startsWith("auth"))).toEqual(["auth.json"]);
  });

  it("says to log in again where the issuer refuses to renew it", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const stored = JSON.parse(await readFile(file, "utf8"));
    stored.tokens.refresh_token = "spent-canary";
    await writeFile(file, JSON.stringify(stored));
    await using server = await startResponsesServer([{ kind: "status", status: 401 }]);
    const done = await run(["run", ...at(provider), "-c", `chatgpt_base_url=${server.url}`, "hi"]);
    expect(done.exitCode).not.toBe(0);
    expect(done.stderr).toContain("cannot renew the ChatGPT login");
    expect(done.stderr).toContain("brig login");
    expect(done.stderr).not.toContain("canary");
  });

  it("sends a key of the environment before the one that is kept, and that before none", async () => {
    await run(["login", "--api-key"], { input: key });
    await using server = await startResponsesServer([respond(messageDone("hello"))]);
    const base = { OPENAI_BASE_URL: server.url };
    await run(["run", "hi"], { env: base });
    await run(["run", "hi"], { env: { ...base, OPENAI_API_KEY: "sk-other" } });
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${key}`,
      "Bearer sk-other",
    ]);
  });

  it("is not told of where the endpoint quotes the key", async () => {
    await run(["login", "--api-key"], { input: key });
    const error = { message: `Incorrect API key provided: ${key}`, code: "invalid_api_key" };
    await using server = await startResponsesServer([{ kind: "status", status: 401, body: { error } }]);
    for (const flags of [[], ["--json"]]) {
      const done = await run(["run", ...flags, "hi"], {
        env: { OPENAI_BASE_URL: server.url, BRIG_DEBUG: "1" },
      });
      expect(done.exitCode).not.toBe(0);
      expect(done.stderr + done.stdout).toContain("Incorrect API key provided");
      expect(done.stderr + done.stdout).not.toContain(key);
    }
  });

  it("lets the token get nowhere but to the endpoint: not into the container, the session or the output", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const workspace = join(folder, "workspace");
    await mkdir(workspace);
    // The search finds any part of what is kept, and not itself.
    const look = [
      "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < $f; done; cat /proc/mounts",
      `ls -la ${home} ${file} 2>&1; cat ${file} 2>&1; env`,
      "touch looked; while [ ! -e seen ]; do sleep 0.1; done",
    ].join("; ");
    await using server = await startResponsesServer([
      respond(callDone("a", "exec_command", { cmd: look, yield_time_ms: 20_000 })),
      respond(messageDone("done")),
    ]);
    const args = ["-C", workspace, ...at(provider), "-c", `chatgpt_base_url=${server.url}`, "look around"];
    const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];
    const running = start(["run", ...onRuntime, ...args], { env: { BRIG_DEBUG: "1" } });
    await eventually(() => access(join(workspace, "looked")));
    const inspected = await Promise.all((await containersOf(running.pid)).map(inspect));
    expect(inspected).not.toEqual([]);
    await writeFile(join(workspace, "seen"), "");
    const done = await running;
    expect([done.exitCode, done.stdout]).toEqual([0, "done\n"]);

    const sessionFile = /^session file (\/.*)$/m.exec(done.stderr)?.[1] ?? "";
    const session = await readFile(sessionFile, "utf8");
    expect(session).toContain("No such file or directory");
    const bodies = JSON.stringify(server.requests.map(({ body }) => body));
    expect(bodies).toContain("/proc");
    for (const secret of [...(await secrets()), accountId])
      for (const told of [session, done.stdout, done.stderr, ...inspected, bodies])
        expect(told).not.toContain(secret);
    for (const { headers } of server.requests) expect(headers.authorization).toMatch(/^Bearer /);
  });
});

/** All that the engine tells of a container. */
async function inspect(id: string): Promise<string> {
  const socket = (await testEngine()).endpoint.replace("unix://", "");
  return await text(await call(socket, { method: "GET", path: `/containers/${id}/json` }));
}

/** The tokens in the file: the access token, the refresh token, the id_token. */
async function secrets(): Promise<string[]> {
  const { tokens } = JSON.parse(await readFile(file, "utf8"));
  return [tokens.access_token, tokens.refresh_token, tokens.id_token];
}

/** For programs that take the surroundings of this process. */
function stubSurroundings(): void {
  for (const [name, value] of Object.entries({ ...surroundings(), CI: "", SSH_CONNECTION: "", SSH_TTY: "" }))
    vi.stubEnv(name, value);
}

/** The kernel lists what a process waits for: standard input among it. */
async function expectToRead(pid: number | undefined): Promise<void> {
  const folder = `/proc/${pid}/fdinfo`;
  const infos = await Promise.all((await readdir(folder)).map((fd) => readFile(join(folder, fd), "utf8")));
  expect(infos.some((info) => /^tfd:\s+0\s/m.test(info))).toBe(true);
}

async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(50);
    }
  }
}
