import { readProxies } from "../../../lib/proxy/proxies.js";
import { OPENAI_URL, type ProviderChoice, type ProviderLogin, takesLogin } from "../resolve-provider.js";
import { bearerKey } from "../static-credentials.js";
import { readAuthFile } from "./auth-file.js";
import { ChatGptCredentials } from "./chatgpt-credentials.js";
import { type IssuerSettings, isOpenai, issuerSettings } from "./issuer/issuer-settings.js";
import { chatGptFile } from "./login-kind.js";

const chatGptUrl = "https://chatgpt.com/backend-api/codex";

/**
 * The login for the configured provider; null if a key takes precedence, the provider uses no login, or
 * nobody has logged in.
 */
export async function configuredLogin(
  config: ProviderChoice & { readonly oauth: Parameters<typeof issuerSettings>[0] },
  environment: Parameters<typeof takesLogin>[1] & { readonly brigHome: string },
): Promise<ProviderLogin | null> {
  if (!takesLogin(config, environment)) return null;
  return await openLogin(
    environment.brigHome,
    issuerSettings(config.oauth, readProxies(environment.variables)),
  );
}

/** The login in `auth.json` of brig's home; null if nobody has logged in. Sends nothing. */
export async function openLogin(home: string, settings: IssuerSettings): Promise<ProviderLogin | null> {
  const file = await readAuthFile(home);
  if (file === null) return null;
  const stored = chatGptFile(file);
  if (stored !== null) {
    const credentials = new ChatGptCredentials({ home, settings, stored });
    return { kind: "chatgpt", credentials, baseUrl: isOpenai(settings) ? chatGptUrl : null };
  }
  const key = file.OPENAI_API_KEY;
  return key == null ? null : { kind: "api-key", credentials: bearerKey(key), baseUrl: OPENAI_URL };
}
