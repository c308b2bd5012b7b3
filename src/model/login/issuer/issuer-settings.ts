import { BrigError } from "../../../errors.js";
import { identityOf } from "./id-token.js";

/** Who logs people in, and as what brig is known there. */
export interface IssuerSettings {
  /** The issuer's address, as it stands in its tokens. */
  issuer: string;
  clientId: string;
}

/**
 * OpenAI's issuer, and the public client of the Codex CLI: whoever has a ChatGPT plan logs in to that one. Both are constants of
 * openai/codex (codex-rs/login/src/server.rs and codex-rs/login/src/auth/manager.rs).
 */
export const openaiIssuer: IssuerSettings = {
  issuer: "https://auth.openai.com",
  clientId: "app_EMoamEEZ73f0CkXaXp7hrann",
};

/**
 * Who logs people in, by `[oauth]` of config.toml; OpenAI where it says nothing. An issuer without a client id is `config.invalid`: the
 * one that OpenAI knows means nothing to others.
 */
export function issuerSettings({
  issuer = openaiIssuer.issuer,
  client_id,
}: {
  readonly issuer?: string | undefined;
  readonly client_id?: string | undefined;
}): IssuerSettings {
  if (client_id !== undefined) return { issuer, clientId: client_id };
  if (isOpenai({ issuer })) return openaiIssuer;
  throw new BrigError(`oauth.issuer is ${issuer}, and oauth.client_id is missing`, {
    code: "config.invalid",
    hint: "set what brig is registered as there, a public client",
  });
}

export function isOpenai({ issuer }: Pick<IssuerSettings, "issuer">): boolean {
  return isSameAddress(issuer, openaiIssuer.issuer);
}

/** A refresh token is shown to nobody but who issued it: a login at another issuer is `model.auth`. */
export function requireIssuer(idToken: string, { issuer }: IssuerSettings): void {
  const told = identityOf(idToken).issuer;
  if (told !== null && isSameAddress(told, issuer)) return;
  throw new BrigError(`the stored login is one of ${told ?? "an unknown issuer"}, not of ${issuer}`, {
    code: "model.auth",
    hint: "log in again: brig login, or set oauth.issuer back",
  });
}

function isSameAddress(one: string, other: string): boolean {
  return (
    one === other || (URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href)
  );
}
