import { access, readFile, writeFile } from "node:fs/promises";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { authFilePath, readAuthFile } from "../../../../../src/agent/model/login/auth-file.js";
import { expiryOf, identityOf } from "../../../../../src/agent/model/login/issuer/id-token.js";
import { issuerSettings, openaiIssuer } from "../../../../../src/agent/model/login/issuer/issuer-settings.js";
import { logOut } from "../../../../../src/agent/model/login/log-out.js";
import { loginKind } from "../../../../../src/agent/model/login/login-kind.js";
import { loginStatus } from "../../../../../src/agent/model/login/login-status.js";
import { openLogin } from "../../../../../src/agent/model/login/open-login.js";
import { parseApiKey, storeApiKey } from "../../../../../src/agent/model/login/store-login.js";
import { keepChatGptLogin, settingsOf } from "../../../../support/chatgpt-login.js";
import { accountId, openIdProvider } from "../../../../support/openid-provider.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

const { signal } = new AbortController();
const nothingSet = { openaiApiKey: undefined };
let home: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  home = directory.path;
});

function jwt(claims: unknown): string {
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
}

/** An auth.json as Codex leaves it after a ChatGPT login. */
async function keepCodexFile(): Promise<void> {
  const account = { chatgpt_account_id: accountId, chatgpt_plan_type: "pro" };
  const idToken = jwt({ iss: openaiIssuer.issuer, sub: "u", "https://api.openai.com/auth": account });
  const tokens = {
    id_token: idToken,
    access_token: jwt({ exp: 4e9 }),
    refresh_token: "r",
    account_id: accountId,
  };
  const file = {
    auth_mode: "chatgpt",
    OPENAI_API_KEY: "sk-exchanged",
    tokens,
    last_refresh: "2026-11-20T10:00:00.123456789Z",
  };
  await writeFile(authFilePath(home), JSON.stringify(file), { mode: 0o600 });
}

describe("an opened login", () => {
  it("is nothing where nobody has logged in", async () => {
    expect(await openLogin(home, openaiIssuer)).toBeNull();
    await writeFile(authFilePath(home), '{"OPENAI_API_KEY":null}');
    expect(await openLogin(home, openaiIssuer)).toBeNull();
  });

  it("with a key is good for OpenAI's API, and there is no other key after a refusal", async () => {
    await storeApiKey(home, "sk-1");
    const login = await openLogin(home, openaiIssuer);
    expect(login).toMatchObject({ kind: "api-key", baseUrl: "https://api.openai.com/v1" });
    expect(await login?.credentials.headers(signal)).toEqual({ Authorization: "Bearer sk-1" });
    expect(await login?.credentials.renew(signal)).toBe(false);
  });

  it("that Codex wrote is good for ChatGPT's API", async () => {
    await keepCodexFile();
    const login = await openLogin(home, openaiIssuer);
    expect(login).toMatchObject({ kind: "chatgpt", baseUrl: "https://chatgpt.com/backend-api/codex" });
    expect(await login?.credentials.headers(signal)).toMatchObject({ "chatgpt-account-id": accountId });
  });

  it("of another issuer is good for nothing that we know of", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    expect(await openLogin(home, settingsOf(provider))).toMatchObject({ kind: "chatgpt", baseUrl: null });
  });

  it("shows no token to who looks at it", async () => {
    await keepCodexFile();
    const login = await openLogin(home, openaiIssuer);
    const { inspect } = await import("node:util");
    const { tokens } = (await readAuthFile(home)) ?? {};
    for (const text of [inspect(login, { depth: 9, showHidden: true }), JSON.stringify(login)])
      expect(text).not.toContain(tokens?.access_token);
  });
});

describe("what is in force", () => {
  const tokens = { id_token: "i", access_token: "a", refresh_token: "r" };
  it.each([
    [{}, null],
    [{ OPENAI_API_KEY: "k" }, "api-key"],
    [{ tokens }, "chatgpt"],
    [{ OPENAI_API_KEY: "k", tokens }, "api-key"],
    [{ OPENAI_API_KEY: "k", tokens, auth_mode: "chatgpt" }, "chatgpt"],
    [{ OPENAI_API_KEY: "k", auth_mode: "chatgpt" }, "api-key"],
    [{ OPENAI_API_KEY: "k", tokens, auth_mode: "apikey" }, "api-key"],
  ] as const)("of %j is %s", (file, kind) => {
    expect(loginKind(file)).toBe(kind);
  });
});

describe("the state of a login", () => {
  it("tells who is logged in, and no secret", async () => {
    await keepCodexFile();
    const status = await loginStatus(home, nothingSet);
    expect(status).toEqual({
      kind: "chatgpt",
      source: "auth.json",
      file: authFilePath(home),
      stored: {
        kind: "chatgpt",
        email: null,
        accountId,
        plan: "pro",
        issuer: openaiIssuer.issuer,
        expiresAt: new Date(4e12).toISOString(),
        lastRefresh: "2026-11-20T10:00:00.123456789Z",
      },
    });
    const file = await readFile(authFilePath(home), "utf8");
    for (const secret of file.match(/e30\.[^"]+|sk-exchanged/g) ?? [])
      expect(JSON.stringify(status)).not.toContain(secret);
  });

  it("puts the environment before the file", async () => {
    await storeApiKey(home, "sk-1");
    expect(await loginStatus(home, { openaiApiKey: "sk-2" })).toMatchObject({
      kind: "api-key",
      source: "environment",
      stored: { kind: "api-key" },
    });
  });
});

describe("a logout", () => {
  it("ends the login at the issuer and forgets it here", async () => {
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    const login = await openLogin(home, settingsOf(provider));
    const file = await readFile(authFilePath(home), "utf8");
    expect(await logOut(home, settingsOf(provider), { signal })).toEqual({
      wasLoggedIn: true,
      notRevoked: null,
    });
    await expect(access(authFilePath(home))).rejects.toMatchObject({ code: "ENOENT" });
    // A copy is of no use.
    await writeFile(authFilePath(home), file, { mode: 0o600 });
    await expect(login?.credentials.renew(signal)).rejects.toMatchObject({ code: "model.auth" });
  });

  it("forgets the login here also where the issuer cannot be told, and says so", async () => {
    const provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    await provider[Symbol.asyncDispose]();
    expect(await logOut(home, settingsOf(provider), { signal })).toEqual({
      wasLoggedIn: true,
      notRevoked: expect.stringContaining("ECONNREFUSED"),
    });
    await expect(access(authFilePath(home))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("shows the token to nobody but its issuer", async () => {
    await using other = await openIdProvider();
    await keepCodexFile();
    expect(await logOut(home, settingsOf(other), { signal })).toMatchObject({
      wasLoggedIn: true,
      notRevoked: expect.stringContaining("is from https://auth.openai.com"),
    });
    expect(other.requests.size).toBe(0);
  });

  it("removes a file that cannot be read", async () => {
    await writeFile(authFilePath(home), "{");
    expect(await logOut(home, openaiIssuer, { signal })).toMatchObject({ wasLoggedIn: true });
    expect(await logOut(home, openaiIssuer, { signal })).toEqual({ wasLoggedIn: false, notRevoked: null });
  });
});

describe("an API key", () => {
  it("is what stands between white space", () => {
    expect(parseApiKey("  sk-1\n")).toBe("sk-1");
  });

  it.each(["", " \n", "sk-1\nsk-2", "sk 1", "sk-\u00e9", "sk-\u0000", "x".repeat(20_000)])(
    "is not %j",
    (text) => {
      expect(() => parseApiKey(text)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
    },
  );
});

describe("who logs people in", () => {
  it("is OpenAI, unless the configuration says otherwise", () => {
    expect(issuerSettings({})).toEqual(openaiIssuer);
    expect(issuerSettings({ client_id: "mine" })).toEqual({ issuer: openaiIssuer.issuer, clientId: "mine" });
    expect(issuerSettings({ issuer: "https://a", client_id: "b" })).toEqual({
      issuer: "https://a",
      clientId: "b",
    });
  });

  it("must be told what brig is called there", () => {
    expect(() => issuerSettings({ issuer: "https://a" })).toThrow(
      expect.objectContaining({ code: "config.invalid" }),
    );
  });
});

describe("a token", () => {
  it.each(["", "opaque", "a.b", "a.!!.c", jwt([]), jwt("text"), jwt(null), jwt({ sub: 1, email: {} })])(
    "that says nothing says nothing: %j",
    (token) => {
      expect(identityOf(token)).toEqual({
        issuer: null,
        subject: null,
        email: null,
        plan: null,
        accountId: null,
      });
      expect(expiryOf(token)).toBeNull();
    },
  );

  it.each([{ exp: "1" }, { exp: -1 }, { exp: 1e300 }])("with an absurd end has none: %j", (claims) => {
    expect(expiryOf(jwt(claims))).toBeNull();
  });
});
