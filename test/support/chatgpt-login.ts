import { logInWithBrowser } from "../../src/agent/model/login/browser-login.js";
import type { IssuerSettings } from "../../src/agent/model/login/issuer/issuer-settings.js";
import { storeTokens } from "../../src/agent/model/login/store-login.js";
import { clientId, type OpenIdProvider } from "./openid-provider.js";

export function settingsOf({ issuer }: OpenIdProvider): IssuerSettings {
  return { issuer, clientId };
}

/** Logs in at a provider as a person does, and keeps the login in this home. */
export async function keepChatGptLogin(provider: OpenIdProvider, home: string): Promise<void> {
  let page: Promise<Response> | undefined;
  const tokens = await logInWithBrowser({
    settings: settingsOf(provider),
    port: 0,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    show: async (url) => {
      page = provider.logIn(url.href);
    },
  });
  await page;
  await storeTokens(home, tokens);
}
