import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { BrowserLoginOptions } from "../../../../../src/agent/model/login/browser-login.js";
import { logInWithBrowser } from "../../../../../src/agent/model/login/browser-login.js";
import { openCallbackServer } from "../../../../../src/agent/model/login/callback-server.js";
import { identityOf } from "../../../../../src/agent/model/login/issuer/id-token.js";
import { describeError } from "../../../../../src/command/error-text.js";
import {
  accountId,
  clientId,
  type OpenIdProvider,
  openIdProvider,
  person,
} from "../../../../support/openid-provider.js";

interface Attempt {
  /** What brig shows, as soon as it is shown. */
  url: Promise<URL>;
  tokens: ReturnType<typeof logInWithBrowser>;
}

function attempt(provider: OpenIdProvider, options: Partial<BrowserLoginOptions> = {}): Attempt {
  let shown: (url: URL) => void = () => undefined;
  const url = new Promise<URL>((resolve) => {
    shown = resolve;
  });
  const tokens = logInWithBrowser({
    settings: { issuer: provider.issuer, clientId },
    port: 0,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    show: async (address) => shown(address),
    ...options,
  });
  // A failure is looked at when the browser has had its page.
  tokens.catch(() => undefined);
  return { url, tokens };
}

/** Where the browser comes back to, as the address for the browser says. */
async function callbackOf({ url }: Attempt, query: Record<string, string>): Promise<string> {
  const redirect = new URL((await url).searchParams.get("redirect_uri") ?? "");
  redirect.search = new URLSearchParams(query).toString();
  return redirect.href;
}

async function stateOf({ url }: Attempt): Promise<string> {
  return (await url).searchParams.get("state") ?? "";
}

describe("a login through a browser", () => {
  it("brings the tokens of whoever logged in, and says so in the browser", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const page = await provider.logIn((await login.url).href);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("You are logged in")]);
    const tokens = await login.tokens;
    expect(tokens).toMatchObject({ account_id: accountId, access_token: expect.stringMatching(/./) });
    expect(tokens.refresh_token).not.toBe("");
    expect(identityOf(tokens.id_token)).toEqual({
      issuer: provider.issuer,
      subject: person,
      email: "ada@example.test",
      plan: "plus",
      accountId,
    });
    const inAnHour = Date.now() + 3600_000;
    expect(Math.abs(Date.parse(tokens.expires_at ?? "") - inAnHour)).toBeLessThan(5000);
  });

  it("asks with PKCE, a state and a nonce, new ones each time", async () => {
    await using provider = await openIdProvider();
    const controller = new AbortController();
    const { signal } = controller;
    const logins = [attempt(provider, { signal }), attempt(provider, { signal })];
    const [one, other] = await Promise.all(logins.map(async ({ url }) => (await url).searchParams));
    expect(one?.get("code_challenge_method")).toBe("S256");
    for (const name of ["code_challenge", "state", "nonce"]) {
      expect(one?.get(name)).toMatch(/^[\w-]{43}$/);
      expect(one?.get(name)).not.toBe(other?.get(name));
    }
    controller.abort(new Error("enough"));
    for (const { tokens } of logins) await expect(tokens).rejects.toThrow("enough");
  });

  it("leaves no code in caches and lets the page load nothing from elsewhere", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const { headers } = await provider.logIn((await login.url).href);
    await login.tokens;
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  });

  it("ends when the person says no", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const page = await provider.refuse((await login.url).href);
    expect([page.status, await page.text()]).toEqual([400, expect.stringContaining("did not succeed")]);
    await expect(login.tokens).rejects.toMatchObject({
      code: "model.auth",
      message: `cannot log in: ${provider.issuer} refuses: access_denied, End-User aborted interaction`,
      hint: "log in again: brig login",
    });
  });

  it("turns away who has not our state, and goes on waiting", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const state = await stateOf(login);
    for (const query of [
      "state=wrong&code=1",
      "code=1",
      "error=access_denied",
      `state=${state}&state=${state}`,
    ]) {
      const response = await fetch(`${await callbackOf(login, {})}?${query}`);
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining("not the login"),
      ]);
    }
    await provider.logIn((await login.url).href);
    expect((await login.tokens).account_id).toBe(accountId);
  });

  it("answers nothing but the one path, asked for by a browser that means this machine", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const callback = await callbackOf(login, { state: await stateOf(login), code: "stolen" });
    expect((await fetch(new URL("/favicon.ico", callback))).status).toBe(404);
    expect((await fetch(callback, { method: "POST" })).status).toBe(404);
    expect(await statusFor(callback, { host: "evil.example" })).toBe(404);
    await provider.logIn((await login.url).href);
    await login.tokens;
  });

  it("takes the first callback only", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const state = await stateOf(login);
    const urls = await Promise.all(
      ["x", "y"].map((code) => callbackOf(login, { state, iss: provider.issuer, code })),
    );
    const answers = await Promise.all(urls.map((url) => fetch(url).catch(() => null)));
    // Either may arrive first. The other one is told, or finds the server gone already.
    const statuses = answers.map((answer) => answer?.status).toSorted();
    expect([
      [400, 409],
      [400, undefined],
    ]).toContainEqual(statuses);
    await expect(login.tokens).rejects.toMatchObject({ code: "model.auth" });
    expect(provider.requests.get("POST /token")).toBe(1);
  });

  it("answers a second callback while the first is being looked at", async () => {
    await using provider = await openIdProvider({ delayMs: { "/token": 300 } });
    const login = attempt(provider);
    const page = provider.logIn((await login.url).href);
    while (!provider.requests.has("POST /token")) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await fetch(await callbackOf(login, { state: await stateOf(login), code: "y" }));
    expect([second.status, await second.text()]).toEqual([409, expect.stringContaining("already used")]);
    expect((await page).status).toBe(200);
    await login.tokens;
  });

  it("frees its port at once, also while a browser holds its connection open", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const { port } = new URL(await callbackOf(login, {}));
    const idle = request({ port, host: "127.0.0.1", method: "POST", headers: { "content-length": 10 } });
    idle.on("error", () => undefined);
    idle.write("half");
    await provider.logIn((await login.url).href);
    await login.tokens;
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow("fetch failed");
  });

  it("ends when nobody comes, and when it is interrupted", async () => {
    await using provider = await openIdProvider();
    await expect(attempt(provider, { timeoutMs: 1000 }).tokens).rejects.toMatchObject({
      code: "model.auth",
      message: "nobody logged in within 1 seconds",
    });
    const controller = new AbortController();
    const login = attempt(provider, { signal: controller.signal });
    await login.url;
    const reason = new Error("ctrl-C");
    controller.abort(reason);
    await expect(login.tokens).rejects.toBe(reason);
    await expect(fetch(await callbackOf(login, {}))).rejects.toThrow("fetch failed");
  });

  it("comes back to the next port where one is taken", async () => {
    await using provider = await openIdProvider();
    const { port } = provider.server.address() as AddressInfo;
    await using server = await openCallbackServer({ ports: [port, 0], state: "s" });
    expect(new URL(server.redirectUri).port).not.toBe(`${port}`);
    expect((await fetch(server.redirectUri)).status).toBe(400);
  });

  it("says so when its port is another's", async () => {
    await using provider = await openIdProvider();
    const { port } = provider.server.address() as AddressInfo;
    await expect(attempt(provider, { port }).tokens).rejects.toMatchObject({
      code: "model.auth",
      message: `cannot listen on port ${port} of this machine`,
      hint: expect.stringContaining("--port"),
    });
  });
});

describe("an answer of the issuer is refused", () => {
  it("that is for another verifier: the provider checks PKCE", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const url = await login.url;
    url.searchParams.set("code_challenge", "another".padEnd(43, "x"));
    await provider.logIn(url.href);
    await expect(login.tokens).rejects.toMatchObject({
      code: "model.auth",
      message: `cannot log in: ${provider.issuer} refuses: invalid_grant, grant request is invalid`,
    });
  });

  it("that is for another nonce", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const url = await login.url;
    url.searchParams.set("nonce", "of an earlier login");
    await provider.logIn(url.href);
    await expect(login.tokens).rejects.toMatchObject({
      code: "model.failed",
      message: expect.stringMatching(/cannot be trusted: .*"nonce"/),
    });
  });

  it("that comes back in another issuer's name", async () => {
    await using provider = await openIdProvider();
    const login = attempt(provider);
    const query = { state: await stateOf(login), code: "x", iss: "https://evil.example" };
    expect((await fetch(await callbackOf(login, query))).status).toBe(400);
    await expect(login.tokens).rejects.toMatchObject({ code: "model.failed" });
    expect(provider.requests.get("POST /token")).toBeUndefined();
  });

  const change = (fields: object) => (body: string) => JSON.stringify({ ...JSON.parse(body), ...fields });
  const changeToken = (edit: (parts: string[]) => void) => (body: string) => {
    const answer = JSON.parse(body) as { id_token: string };
    const parts = answer.id_token.split(".");
    edit(parts);
    return JSON.stringify({ ...answer, id_token: parts.join(".") });
  };
  const changeClaims = (claims: object) =>
    changeToken((parts) => {
      const old = JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString()) as object;
      parts[1] = Buffer.from(JSON.stringify({ ...old, ...claims })).toString("base64url");
    });

  it.each([
    ["whose id_token was changed", changeClaims({ sub: "mallory" }), /signature/],
    [
      "whose id_token is signed with another key",
      changeToken((parts) => parts.splice(2, 1, "AAAA")),
      /signature/,
    ],
    [
      "whose id_token is not signed",
      changeToken((parts) => {
        parts[0] = Buffer.from('{"alg":"none"}').toString("base64url");
        parts[2] = "";
      }),
      /cannot be trusted/,
    ],
    ["whose id_token is for another client", changeClaims({ aud: "another" }), /"aud"/],
    ["whose id_token is another issuer's", changeClaims({ iss: "https://evil.example" }), /"iss"/],
    ["whose id_token has expired", changeClaims({ exp: 1 }), /expired|"exp"/],
    ["without an id_token", change({ id_token: undefined }), /id_token/],
    ["without a refresh token", change({ refresh_token: undefined }), /refresh_token/],
    ["without an access token", change({ access_token: undefined }), /access_token/],
    ["with a token of two lines", change({ access_token: "a\r\nx-evil: 1" }), /access_token/],
    ["with an absurd lifetime", change({ expires_in: 1e300 }), /expires_in/],
    ["that is no JSON", () => "<html>", /./],
    ["that is longer than two megabytes", () => `{"a":"${"x".repeat(2 << 20)}"}`, /longer than/],
    ["that is a list", () => "[]", /./],
  ])("%s", async (_name, tamper, reason) => {
    await using provider = await openIdProvider({
      tamper: ({ path, body }) => (path === "/token" ? tamper(body) : body),
    });
    const login = attempt(provider);
    const page = await provider.logIn((await login.url).href);
    expect(page.status).toBe(400);
    const error = await login.tokens.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "model.failed", message: expect.stringMatching(reason) });
    const { code = "none" } = Object.fromEntries(new URL(page.url).searchParams);
    expect(describeError(error, { showsCauses: true })).not.toContain(code);
  });

  it("that is a discovery document of somebody else", async () => {
    await using provider = await openIdProvider({
      tamper: ({ path, body }) =>
        path.startsWith("/.well-known")
          ? JSON.stringify({ ...JSON.parse(body), issuer: "https://evil.example" })
          : body,
    });
    await expect(attempt(provider).tokens).rejects.toMatchObject({
      code: "model.failed",
      message: expect.stringContaining("cannot find out how to log in"),
    });
  });

  it("that is a redirection", async () => {
    await using provider = await openIdProvider({
      tamper: ({ path, body }) => (path === "/token" ? "" : body),
      redirects: { "/token": "http://127.0.0.1:9/" },
    });
    const login = attempt(provider);
    await provider.logIn((await login.url).href);
    await expect(login.tokens).rejects.toMatchObject({ code: "model.failed" });
  });
});

describe("an issuer", () => {
  it("that is not there is unreachable", async () => {
    const provider = await openIdProvider();
    await provider[Symbol.asyncDispose]();
    await expect(attempt(provider).tokens).rejects.toMatchObject({
      code: "model.unreachable",
      message: `cannot find out how to log in: ${provider.issuer} cannot be reached (ECONNREFUSED)`,
    });
  });

  it("that falls silent is left at an interruption", async () => {
    const server = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close().closeAllConnections());
    await using provider = await openIdProvider();
    const controller = new AbortController();
    const settings = { issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, clientId };
    const login = attempt(provider, { settings, signal: controller.signal });
    setTimeout(() => controller.abort(new Error("ctrl-C")), 50);
    await expect(login.tokens).rejects.toThrow("ctrl-C");
  });

  it.each([
    "http://auth.example.com",
    "ftp://127.0.0.1",
    "https://user@auth.example.com",
    "https://a/?b",
    "auth",
  ])("at %s is refused", async (issuer) => {
    await using provider = await openIdProvider();
    const login = attempt(provider, { settings: { issuer, clientId } });
    await expect(login.tokens).rejects.toMatchObject({ code: "config.invalid" });
  });
});

/** The status of a request whose Host header `fetch` would not send. */
async function statusFor(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject).end();
  });
}
