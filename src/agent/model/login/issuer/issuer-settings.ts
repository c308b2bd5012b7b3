import { BrigError } from "../../../../errors.js";
import type { Proxies } from "../../../../lib/proxy/proxies.js";
import { identityOf } from "./id-token.js";

/** The OAuth issuer that brig logs in to. */
export interface IssuerSettings {
  /** The issuer's address, spelled as in its tokens. */
  issuer: string;
  clientId: string;
  /** Through which requests are sent. Default: none. */
  proxies?: Proxies | undefined;
}

/**
 * OpenAI's issuer, and the public client of the Codex CLI, which ChatGPT plans can log in to. Both are
 * constants in openai/codex (codex-rs/login/src/server.rs and codex-rs/login/src/auth/manager.rs).
 */
export const openaiIssuer: IssuerSettings = {
  issuer: "https://auth.openai.com",
  clientId: "app_EMoamEEZ73f0CkXaXp7hrann",
};

/**
 * The issuer in `[oauth]` of config.toml. Default: OpenAI. Error: `config.invalid` for another issuer without
 * a client id: OpenAI's is not registered there.
 */
export function issuerSettings(
  {
    issuer = openaiIssuer.issuer,
    client_id,
  }: { readonly issuer?: string | undefined; readonly client_id?: string | undefined },
  proxies?: Proxies,
): IssuerSettings {
  if (client_id !== undefined) return { issuer, clientId: client_id, proxies };
  if (isOpenai({ issuer })) return { ...openaiIssuer, proxies };
  throw new BrigError(`oauth.issuer is ${issuer}, and oauth.client_id is missing`, {
    code: "config.invalid",
    hint: "set it to the id of the public client that brig is registered as there",
  });
}

export function isOpenai({ issuer }: Pick<IssuerSettings, "issuer">): boolean {
  return isSameAddress(issuer, openaiIssuer.issuer);
}

/** Error: `model.auth` if another issuer issued the token: it must not get the refresh token. */
export function requireIssuer(idToken: string, { issuer }: IssuerSettings): void {
  const tokenIssuer = identityOf(idToken).issuer;
  if (tokenIssuer !== null && isSameAddress(tokenIssuer, issuer)) return;
  throw new BrigError(`the stored login is from ${tokenIssuer ?? "an unknown issuer"}, not from ${issuer}`, {
    code: "model.auth",
    hint: "log in again: brig login, or set oauth.issuer back",
  });
}

function isSameAddress(one: string, other: string): boolean {
  return (
    one === other || (URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href)
  );
}
