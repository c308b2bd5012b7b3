import { describe, expect, it } from "vitest";
import { type DeviceLoginOptions, logInWithCode } from "../../../../../src/agent/model/login/device-login.js";
import type { DeviceCode } from "../../../../../src/agent/model/login/issuer/device-code.js";
import { identityOf } from "../../../../../src/agent/model/login/issuer/id-token.js";
import { openaiCodeTokens } from "../../../../../src/agent/model/login/issuer/openai-device-code.js";
import { settingsOf } from "../../../../support/chatgpt-login.js";
import { CookieBrowser } from "../../../../support/cookie-browser.js";
import { addDeviceCodes } from "../../../../support/openai-device-codes.js";
import {
  accountId,
  type OpenIdProvider,
  openIdProvider,
  person,
} from "../../../../support/openid-provider.js";

const inDeviceAnswer =
  (fields: object) =>
  ({ path, body }: { path: string; body: string }) =>
    path === "/device/auth" ? JSON.stringify({ ...JSON.parse(body), ...fields }) : body;

type Flow = Parameters<typeof logInWithCode>[1];

function attempt(provider: OpenIdProvider, options: Partial<DeviceLoginOptions> = {}, flow?: Flow) {
  let shown: (code: DeviceCode) => void = () => undefined;
  const code = new Promise<DeviceCode>((resolve) => {
    shown = resolve;
  });
  const login = {
    settings: settingsOf(provider),
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    show: async (one: DeviceCode) => shown(one),
    ...options,
  };
  const tokens = logInWithCode(login, flow);
  tokens.catch(() => undefined);
  return { code, tokens };
}

describe("a login with a code", () => {
  it("brings the tokens of who entered the code in a browser elsewhere", async () => {
    await using provider = await openIdProvider({ tamper: inDeviceAnswer({ interval: 0.2 }) });
    const { code, tokens } = attempt(provider);
    const { url, code: userCode } = await code;
    expect(url).toBe(`${provider.issuer}/device`);
    await new CookieBrowser().enterCode(url, userCode);
    expect(identityOf((await tokens).id_token)).toMatchObject({ subject: person, accountId });
  });

  it("works OpenAI's way too", async () => {
    await using provider = await openIdProvider();
    const codes = addDeviceCodes(provider);
    const { code, tokens } = attempt(provider, {}, openaiCodeTokens);
    const { url, code: userCode } = await code;
    expect(url).toBe(`${provider.issuer}/codex/device`);
    await codes.enter(userCode);
    expect(identityOf((await tokens).id_token)).toMatchObject({ subject: person, accountId });
  });

  it.each([
    ["the standard's way", undefined],
    ["OpenAI's way", openaiCodeTokens],
  ])("ends, %s, when nobody enters the code, and at an interruption", async (_name, flow) => {
    await using provider = await openIdProvider();
    addDeviceCodes(provider);
    await expect(attempt(provider, { timeoutMs: 300 }, flow).tokens).rejects.toMatchObject({
      code: "model.auth",
      message: "nobody entered the code within 0 seconds",
    });
    const controller = new AbortController();
    const login = attempt(provider, { signal: controller.signal }, flow);
    await login.code;
    const reason = new Error("ctrl-C");
    controller.abort(reason);
    await expect(login.tokens).rejects.toBe(reason);
  });

  it("is refused by an issuer that has no codes", async () => {
    await using provider = await openIdProvider({
      configuration: { features: { deviceFlow: { enabled: false } } },
    });
    await expect(attempt(provider).tokens).rejects.toMatchObject({ code: "config.invalid" });
    await expect(attempt(provider, {}, openaiCodeTokens).tokens).rejects.toMatchObject({
      code: "model.auth",
      message: "the issuer refuses a device code: status 404",
    });
  });

  it("refuses a code whose verifier is not the one it was asked for with", async () => {
    await using provider = await openIdProvider();
    const codes = addDeviceCodes(provider, { verifier: "another".padEnd(43, "x") });
    const { code, tokens } = attempt(provider, {}, openaiCodeTokens);
    await codes.enter((await code).code);
    await expect(tokens).rejects.toMatchObject({
      code: "model.auth",
      message: expect.stringContaining("invalid_grant"),
    });
  });

  it("shows no address but one of the web", async () => {
    await using provider = await openIdProvider({
      tamper: inDeviceAnswer({ verification_uri: "file:///etc" }),
    });
    await expect(attempt(provider).tokens).rejects.toMatchObject({ code: "model.failed" });
  });
});
