import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type AuthFile, authFilePath, readAuthFile } from "../../../../../src/agent/model/login/auth-file.js";
import { ChatGptCredentials } from "../../../../../src/agent/model/login/chatgpt-credentials.js";
import { chatGptFile } from "../../../../../src/agent/model/login/login-kind.js";
import { openLogin } from "../../../../../src/agent/model/login/open-login.js";
import { storeApiKey } from "../../../../../src/agent/model/login/store-login.js";
import { describeError } from "../../../../../src/command/error-text.js";
import { createLock, readCurrentProcess } from "../../../../../src/lib/file-lock.js";
import { keepChatGptLogin, settingsOf } from "../../../../support/chatgpt-login.js";
import {
  accountId,
  clientId,
  type OpenIdProvider,
  openIdProvider,
} from "../../../../support/openid-provider.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

const { signal } = new AbortController();
const asker = fileURLToPath(new URL("../../../../fixtures/ask-for-headers.ts", import.meta.url));
let home: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  home = directory.path;
});

/** Credentials on the stored login, so many seconds later than now. */
async function credentials(provider: OpenIdProvider, { later = 0 } = {}): Promise<ChatGptCredentials> {
  const stored = chatGptFile((await readAuthFile(home)) ?? {});
  if (stored === null) throw new Error("nobody is logged in");
  const now = () => new Date(Date.now() + later * 1000);
  return new ChatGptCredentials({ home, settings: settingsOf(provider), stored, now });
}

async function storedFile(): Promise<AuthFile> {
  return JSON.parse(await readFile(authFilePath(home), "utf8"));
}

async function change(edit: (file: AuthFile & { tokens: NonNullable<AuthFile["tokens"]> }) => void) {
  const file = chatGptFile(await storedFile());
  if (file === null) throw new Error("nobody is logged in");
  edit(file);
  await writeFile(authFilePath(home), JSON.stringify(file));
}

const renewals = ({ requests }: OpenIdProvider) => (requests.get("POST /token") ?? 0) - 1;

describe("the credentials of a ChatGPT login", () => {
  it("are the token and the account, and cost no request while the token holds", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const headers = await (await credentials(provider)).headers(signal);
    expect(headers).toEqual({
      authorization: `Bearer ${(await storedFile()).tokens?.access_token}`,
      "chatgpt-account-id": accountId,
    });
    expect(renewals(provider)).toBe(0);
  });

  it("are renewed shortly before the token expires, and stored", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const before = await storedFile();
    await (await credentials(provider, { later: 3530 })).headers(signal);
    expect(renewals(provider)).toBe(0);
    const headers = await (await credentials(provider, { later: 3545 })).headers(signal);
    expect(renewals(provider)).toBe(1);
    const after = await storedFile();
    expect(headers.authorization).toBe(`Bearer ${after.tokens?.access_token}`);
    for (const name of ["access_token", "refresh_token"] as const)
      expect(after.tokens?.[name]).not.toBe(before.tokens?.[name]);
    expect(Date.parse(after.last_refresh ?? "")).toBeGreaterThan(Date.parse(before.last_refresh ?? ""));
    expect(after.tokens?.account_id).toBe(accountId);
  });

  it("with a life of seconds are not renewed for every request", async () => {
    await using provider = await openIdProvider({ accessTokenSeconds: 30 });
    await keepChatGptLogin(provider, home);
    await (await credentials(provider, { later: 20 })).headers(signal);
    expect(renewals(provider)).toBe(0);
    await (await credentials(provider, { later: 25 })).headers(signal);
    expect(renewals(provider)).toBe(1);
  });

  it("are renewed after a refusal, once for all requests that were refused together", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const both = await credentials(provider);
    const before = await both.headers(signal);
    expect(await Promise.all([both.renew(signal), both.renew(signal), both.renew(signal)])).toEqual([
      true,
      true,
      true,
    ]);
    expect(await both.renew(signal)).toBe(true);
    expect(renewals(provider)).toBe(1);
    expect(await both.headers(signal)).not.toEqual(before);
  });

  it("after a refusal are those that another process has stored meanwhile", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const [one, other] = [await credentials(provider), await credentials(provider)];
    await one.renew(signal);
    await other.renew(signal);
    expect(renewals(provider)).toBe(1);
    expect(await other.headers(signal)).toEqual(await one.headers(signal));
  });

  it("are renewed for many requests of a process at once with one request", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const shared = await credentials(provider, { later: 3590 });
    const all = await Promise.all(Array.from({ length: 10 }, () => shared.headers(signal)));
    expect(new Set(all.map(({ authorization }) => authorization)).size).toBe(1);
    expect(renewals(provider)).toBe(1);
  });

  it("stay good when processes renew them at once: no refresh token is used twice", {
    timeout: 120_000,
  }, async () => {
    await using provider = await openIdProvider({ accessTokenSeconds: 1, delayMs: { "/token": 50 } });
    await keepChatGptLogin(provider, home);
    await change((file) => {
      file.tokens.expires_at = new Date(0).toISOString();
    });
    const rounds = 40;
    const args = ["--import", "tsx", asker, home, provider.issuer, clientId, String(rounds)];
    const runs = Array.from({ length: 2 }, () => execa(process.execPath, args, { reject: false }));
    // This process takes part until the others are through.
    const over = Promise.all(runs);
    let isOver = false;
    void over.finally(() => {
      isOver = true;
    });
    const own = await credentials(provider);
    for (; !isOver; await sleep(25)) await own.headers(signal);
    for (const { exitCode, stdout, stderr } of await over) {
      expect([exitCode, stderr]).toEqual([0, ""]);
      expect(stdout.split("\n")).toHaveLength(rounds);
    }
    expect(renewals(provider)).toBeGreaterThanOrEqual(1);
    // A refresh token that was used twice would have ended the login at the provider.
    await (await credentials(provider)).renew(signal);
  });

  it("keep what else is in the file", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    await change((file) => Object.assign(file, { agent_identity: "x", tokens: { ...file.tokens, more: 1 } }));
    await (await credentials(provider)).renew(signal);
    expect(await storedFile()).toMatchObject({ agent_identity: "x", tokens: { more: 1 } });
  });

  it("keep the refresh token where the issuer does not replace it", async () => {
    await using provider = await openIdProvider({ rotates: false });
    await keepChatGptLogin(provider, home);
    const before = await storedFile();
    await (await credentials(provider)).renew(signal);
    const after = await storedFile();
    expect(after.tokens?.refresh_token).toBe(before.tokens?.refresh_token);
    expect(after.tokens?.access_token).not.toBe(before.tokens?.access_token);
  });

  it("of a file that Codex wrote are renewed after eight days, when the token does not say its end", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const weekAgo = new Date(Date.now() - 7 * 86_400_000).toISOString();
    await change((file) => {
      delete file.tokens.expires_at;
      file.last_refresh = weekAgo;
    });
    await (await credentials(provider)).headers(signal);
    expect(renewals(provider)).toBe(0);
    await (await credentials(provider, { later: 86_400 })).headers(signal);
    expect(renewals(provider)).toBe(1);
  });
});

describe("a login that cannot be renewed", () => {
  it("is told of where the issuer refuses it, with what to do, and the issuer is not asked again", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    await change((file) => {
      file.tokens.refresh_token = "spent";
    });
    const login = await credentials(provider, { later: 3600 });
    for (let turn = 0; turn < 3; turn += 1)
      await expect(login.headers(signal)).rejects.toMatchObject({
        code: "model.auth",
        message: `cannot renew the ChatGPT login: ${provider.issuer} refuses: invalid_grant, grant request is invalid`,
        hint: "log in again: brig login",
      });
    expect(renewals(provider)).toBe(1);
  });

  const openaiRefusal = { error: { message: "Your refresh token was used", code: "refresh_token_reused" } };
  it.each([
    ["a refusal in OpenAI's own words", 401, openaiRefusal, "model.auth"],
    ["a refusal without words", 400, "", "model.auth"],
    ["an overload", 429, { error: "slow_down" }, "model.unreachable"],
    ["a fault", 503, "<html>", "model.unreachable"],
    ["a fault in the protocol's words", 500, { error: "server_error" }, "model.unreachable"],
    ["an answer of another kind", 200, "<html>", "model.failed"],
    ["an answer that is none", 418, "", "model.failed"],
  ])(
    "for %s is told of as such; a passing one does not end a token that holds",
    async (_name, status, body, code) => {
      const answers: Record<string, { status: number; body: object | string }> = {};
      await using provider = await openIdProvider({ answers });
      await keepChatGptLogin(provider, home);
      answers["/token"] = { status, body };
      await expect((await credentials(provider, { later: 3600 })).headers(signal)).rejects.toMatchObject({
        code,
      });
      const early = (await credentials(provider, { later: 3580 })).headers(signal);
      if (code === "model.auth") await expect(early).rejects.toMatchObject({ code });
      else expect((await early).authorization).toMatch(/^Bearer /);
    },
  );

  it("is taken up again when somebody has logged in anew meanwhile", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const good = await storedFile();
    await change((file) => {
      file.tokens.refresh_token = "spent";
    });
    const login = await credentials(provider, { later: 3600 });
    await expect(login.headers(signal)).rejects.toMatchObject({ code: "model.auth" });
    await writeFile(authFilePath(home), JSON.stringify(good));
    expect((await login.headers(signal)).authorization).toMatch(/^Bearer /);
  });

  it("serves on while the token holds and the issuer is away", async () => {
    const provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    await provider[Symbol.asyncDispose]();
    const headers = await (await credentials(provider, { later: 3580 })).headers(signal);
    expect(headers.authorization).toMatch(/^Bearer /);
    await expect((await credentials(provider, { later: 3600 })).headers(signal)).rejects.toMatchObject({
      code: "model.unreachable",
    });
  });

  it("has ended when it is forgotten, or another is stored", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const login = await credentials(provider);
    await storeApiKey(home, "sk-1");
    await expect(login.renew(signal)).rejects.toMatchObject({
      code: "model.auth",
      message: "the ChatGPT login of this run has ended: it is no longer stored",
    });
    expect(renewals(provider)).toBe(0);
  });

  it("has ended when somebody else has logged in", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const login = await credentials(provider);
    const claims = Buffer.from(JSON.stringify({ iss: provider.issuer, sub: "bob" })).toString("base64url");
    await change((file) => {
      file.tokens.id_token = `e30.${claims}.x`;
    });
    await expect(login.renew(signal)).rejects.toMatchObject({
      code: "model.auth",
      message: "the ChatGPT login of this run has ended: somebody else has logged in meanwhile",
    });
  });

  it("is not sent to another issuer than it came from", async () => {
    await using provider = await openIdProvider();
    await using other = await openIdProvider();
    await keepChatGptLogin(provider, home);
    await expect(openLogin(home, settingsOf(other))).rejects.toMatchObject({
      code: "model.auth",
      message: `the stored login is from ${provider.issuer}, not from ${other.issuer}`,
    });
    expect(other.requests.size).toBe(0);
  });

  it("is refused when the new tokens are somebody else's", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const claims = { iss: provider.issuer, sub: "bob" };
    await change((file) => {
      file.tokens.id_token = `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
    });
    await expect((await credentials(provider)).renew(signal)).rejects.toMatchObject({
      code: "model.failed",
      message: expect.stringContaining("another person"),
    });
  });

  it.each([
    ["a short one", "rt-very-secret"],
    ["one that is longer than what is told", `rt-very-secret${"x".repeat(2000)}`],
  ])("quotes no token, even where the issuer does: %s", async (_, token) => {
    await using provider = await openIdProvider({
      tamper: ({ path, body }) => (path === "/token" && body.includes("error") ? told : body),
    });
    await keepChatGptLogin(provider, home);
    await change((file) => {
      file.tokens.refresh_token = token;
    });
    const told = JSON.stringify({ error: "invalid_grant", error_description: `unknown ${token}\u001b[2J` });
    const error = await (await credentials(provider)).renew(signal).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringContaining("invalid_grant, unknown [secret]") });
    expect(describeError(error, { showsCauses: true })).not.toContain("rt-very-secret");
    expect((error as Error).message).not.toContain("\u001b");
  });

  it("is waited for no longer than the caller wants, while another process has it", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    using _lock = createLock(join(home, "auth.json"), await readCurrentProcess());
    const login = await credentials(provider);
    await expect(login.renew(AbortSignal.timeout(50))).rejects.toMatchObject({ name: "TimeoutError" });
    expect(renewals(provider)).toBe(0);
  });

  it("is renewed to the end and stored, although the caller stops waiting for it", async () => {
    await using provider = await openIdProvider({ delayMs: { "/token": 200 } });
    await keepChatGptLogin(provider, home);
    const before = await storedFile();
    const login = await credentials(provider);
    const caller = new AbortController();
    const renewed = login.renew(caller.signal);
    while (renewals(provider) === 0) await sleep(5);
    caller.abort();
    await renewed;
    expect((await storedFile()).tokens?.refresh_token).not.toBe(before.tokens?.refresh_token);
  });
});
