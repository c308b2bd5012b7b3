import { createHash, randomBytes } from "node:crypto";
import { CookieBrowser } from "./cookie-browser.js";
import { clientId, type OpenIdProvider } from "./openid-provider.js";

/** The endpoints that OpenAI's issuer has for logins with a code, in front of a provider that really hands out the tokens. */
export interface DeviceCodes {
  /** As if a person had entered this code and logged in. */
  enter(code: string): Promise<void>;
}

const waiting = { status: 403, body: "{}" };

/** With a `verifier` the one that is handed out, right or wrong. */
export function addDeviceCodes(
  { issuer, server }: OpenIdProvider,
  { verifier }: { verifier?: string } = {},
): DeviceCodes {
  const codes = new Map<string, { status: number; body: string }>();
  const [provider] = server.listeners("request") as ((...args: unknown[]) => void)[];
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    if (!request.url?.startsWith("/api/accounts/deviceauth/")) return provider?.(request, response);
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      const answer = request.url?.endsWith("/usercode") ? issue(JSON.parse(body)) : redeem(JSON.parse(body));
      response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
    });
  });

  function issue({ client_id }: { client_id: string }) {
    if (client_id !== clientId) return { status: 400, body: "{}" };
    const code = randomBytes(4).toString("hex").toUpperCase();
    codes.set(code, waiting);
    return {
      status: 200,
      body: JSON.stringify({ device_auth_id: `id-${code}`, user_code: code, interval: "0" }),
    };
  }

  function redeem({ user_code, device_auth_id }: { user_code: string; device_auth_id: string }) {
    return (device_auth_id === `id-${user_code}` && codes.get(user_code)) || { status: 400, body: "{}" };
  }

  return {
    async enter(code) {
      const code_verifier = randomBytes(32).toString("base64url");
      const redirect = `${issuer}/deviceauth/callback`;
      const query = new URLSearchParams({
        client_id: clientId,
        redirect_uri: redirect,
        response_type: "code",
        scope: "openid profile email offline_access",
        prompt: "consent",
        code_challenge: createHash("sha256").update(code_verifier).digest("base64url"),
        code_challenge_method: "S256",
      });
      const { url } = await new CookieBrowser().logIn(`${issuer}/auth?${query}`);
      const authorization_code = new URL(url).searchParams.get("code");
      codes.set(code, {
        status: 200,
        body: JSON.stringify({ authorization_code, code_verifier: verifier ?? code_verifier }),
      });
    },
  };
}
