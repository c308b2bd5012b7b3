import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { readEgress } from "../../../../src/sandbox/network/egress/read-egress.js";
import { findCodexLogin } from "../../../../src/services/wrap/agents/codex-login.js";
import { LoginInForce } from "../../../../src/services/wrap/login-in-force.js";
import { keepChatGptLogin } from "../../../support/chatgpt-login.js";
import { clientId, openIdProvider } from "../../../support/openid-provider.js";

const { signal } = new AbortController();

/** A login of `brig login` at a real provider, in a home of its own. */
async function openPlace() {
  const home = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(home, { recursive: true }));
  const provider = await openIdProvider();
  onTestFinished(() => provider[Symbol.asyncDispose]());
  await keepChatGptLogin(provider, home);
  await writeFile(
    join(home, "config.toml"),
    `[oauth]\nissuer = "${provider.issuer}"\nclient_id = "${clientId}"\n`,
  );
  const environment = readEnvironment({ HOME: home, BRIG_HOME: home, CODEX_HOME: join(home, "codex") });
  const expire = async () => {
    const path = join(home, "auth.json");
    const stored = JSON.parse(await readFile(path, "utf8"));
    stored.tokens.expires_at = new Date(Date.now() - 1000).toISOString();
    await writeFile(path, JSON.stringify(stored));
  };
  const find = async () => {
    const found = await findCodexLogin(environment, signal);
    if (found?.kind !== "chatgpt") throw new Error("there is no login with ChatGPT");
    return found.login;
  };
  return { provider, expire, find, renewals: () => (provider.requests.get("POST /token") ?? 0) - 1 };
}

async function inspectionOf(value: string) {
  const hosts = ["chatgpt.com"];
  const inspection = await readEgress(
    [{ secrets: { CHATGPT_ACCESS_TOKEN: { hosts, value } } }],
    readEnvironment({ HOME: "/" }),
  );
  if (inspection === null) throw new Error("there is a secret");
  return inspection;
}

it("a login that has expired is renewed before it is used, once for all that use it", async () => {
  const { find, expire, renewals } = await openPlace();
  const before = (await find()).tokens;
  await expire();
  const both = await Promise.all([find(), find()]);
  expect(renewals()).toBe(1);
  expect(both[0]?.tokens).toEqual(both[1]?.tokens);
  expect(both[0]?.tokens.accessToken).not.toBe(before.accessToken);
  expect(both[0]?.plan).toBe("plus");
});

it("requests get the token that is renewed while the agent runs, which is hidden like the one before", async () => {
  const { find, renewals, provider } = await openPlace();
  const login = await find();
  const first = login.tokens.accessToken;
  const inspection = await inspectionOf(first);
  const placeholder = inspection.secrets[0]?.placeholder;
  let token = first;
  // The moment at which it is due is the clock's, so another login renews it here.
  const renewing = { ...login, current: async () => ({ ...login.tokens, accessToken: token }) };
  using _force = new LoginInForce(renewing, inspection, { lookMs: 5 });
  const other = await openPlace();
  await other.expire();
  token = (await other.find()).tokens.accessToken;
  await expect.poll(() => inspection.secrets[0]?.value).toBe(token);
  expect(token).not.toBe(first);
  expect(inspection.secrets[0]?.placeholder).toBe(placeholder);
  expect(inspection.mask?.text(`${first} ${token}`)).toMatch(/^\*+ \*+$/);
  expect([renewals(), provider.requests.get("POST /token")]).toEqual([0, 1]);
});

it("a token that cannot be renewed stays, and the reason is kept", async () => {
  const { find } = await openPlace();
  const login = await find();
  const inspection = await inspectionOf(login.tokens.accessToken);
  const failing = { ...login, current: () => Promise.reject(new Error("the issuer is away")) };
  using force = new LoginInForce(failing, inspection, { lookMs: 5 });
  await expect.poll(() => force.failure).toContain("the issuer is away");
  expect(inspection.secrets[0]?.value).toBe(login.tokens.accessToken);
});
