import { once } from "node:events";
import type { RequestListener } from "node:http";
import { request } from "node:http";
import { connect, type TLSSocket } from "node:tls";
import { expect } from "vitest";
import type { Canary } from "../../src/sandbox/egress/canaries/new-canary.js";
import { Inspection, type InspectionOptions } from "../../src/sandbox/egress/inspection.js";
import type { UpstreamProxy } from "../../src/sandbox/egress/read-upstream.js";
import { type AwsCredentials, AwsKeys } from "../../src/sandbox/egress/secrets/aws/aws-keys.js";
import { egressPlace } from "./egress-place.js";
import { tlsServer } from "./tls-server.js";

export const HOST = "api.test";
export const SECRET = "sk-the-real+key/of=nobody";
export const PLACEHOLDER = "sk-Placeholder0123456789";

export const AWS_KEYS = {
  accessKeyId: "ASIAREALREALREALREAL",
  secretAccessKey: "the/real+secret/access/key/of/nobody/123",
  sessionToken: "the-real-session-token==",
};
export const AWS_PLACEHOLDERS = {
  accessKeyId: "ASIAPLACEHOLDER23456",
  secretAccessKey: "placeholder-of-the-secret-access-key-234",
  sessionToken: "placeholder-of-the-session-token",
};

type SecretHere = Partial<InspectionOptions["secrets"][number]>;
type AwsSecretHere = Partial<NonNullable<InspectionOptions["awsSecrets"]>[number]> & {
  credentials?: AwsCredentials;
};

export function lasting(credentials: AwsCredentials): AwsKeys {
  return new AwsKeys({ credentials, expiresAtMs: null });
}

interface InspectedOptions {
  rules?: Omit<InspectionOptions["rules"][number], "host">[];
  secret?: SecretHere;
  awsSecret?: AwsSecretHere;
  canaries?: readonly Canary[];
  upstream?: (port: number) => Promise<UpstreamProxy | null>;
  /** Whether the allow-list has the server. */
  isListed?: boolean;
}

/** A server behind an allow-list that has rules for requests, or a secret. */
export async function inspectedPlace(
  onRequest: RequestListener,
  { rules = [], secret, awsSecret, canaries = [], upstream, isListed = true }: InspectedOptions = {},
) {
  const server = await tlsServer(HOST, onRequest);
  const hosts = [`other.test:${server.port}`, `127.0.0.1:${server.port}`];
  if (isListed) hosts.unshift(`${HOST}:${server.port}`);
  const inspection = await Inspection.create({
    rules: rules.map((rule) => ({ ...rule, host: `${HOST}:${server.port}` })),
    secrets:
      secret === undefined
        ? []
        : [
            {
              ...{ name: "API_KEY", value: SECRET, placeholder: PLACEHOLDER, query: [], plainHttp: false },
              ...{ hosts: [`${HOST}:${server.port}`], headers: ["authorization"], ...secret },
            },
          ],
    awsSecrets:
      awsSecret === undefined
        ? []
        : [
            {
              ...{ name: "AWS", variables: {}, regions: null, services: null, plainHttp: false },
              rule: { hosts: [], plain_http: false },
              ...{ keys: lasting(awsSecret.credentials ?? AWS_KEYS), placeholders: AWS_PLACEHOLDERS },
              ...{ hosts: [`${HOST}:${server.port}`], ...awsSecret },
            },
          ],
    authorities: [server.authority],
  });
  const egress = await egressPlace({
    hosts,
    inspection,
    canaries,
    upstream: (await upstream?.(server.port)) ?? null,
  });
  return {
    ...{ server, inspection, egress },
    ask: async (path: string, options: AskOptions = {}) =>
      await ask(egress.proxyPort, path, { port: server.port, ca: inspection.certificate, ...options }),
    [Symbol.asyncDispose]: async () => {
      await egress[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

interface AskOptions {
  method?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  alpn?: string[];
  host?: string;
}

/** Asks through the proxy with CONNECT, trusting only the given authority. */
export async function ask(
  proxyPort: number,
  path: string,
  { port, ca, method = "GET", headers, body, alpn, host = HOST }: AskOptions & { port: number; ca: string },
): Promise<{ status: number; reason: string; text: string; protocol: string | false | null }> {
  const tls = await tunnel(proxyPort, { host, port, ca, alpn });
  const outgoing = request({
    createConnection: () => tls,
    ...{ method, path, headers: { host: `${host}:${port}`, ...headers } },
  });
  outgoing.end(body);
  const [incoming] = await once(outgoing, "response");
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { statusCode: status, statusMessage: reason } = incoming;
  return { status, reason, text: Buffer.concat(chunks).toString(), protocol: tls.alpnProtocol };
}

export async function tunnel(
  proxyPort: number,
  { host, port, ca, alpn }: { host: string; port: number; ca: string; alpn?: string[] | undefined },
): Promise<TLSSocket> {
  const path = `${host}:${port}`;
  const opening = request({ port: proxyPort, method: "CONNECT", path, headers: { host: path } });
  opening.end();
  const [response, socket] = await once(opening, "connect");
  expect(response.statusCode).toBe(200);
  const tls = connect({ socket, servername: host, ca, ...(alpn && { ALPNProtocols: alpn }) });
  await once(tls, "secureConnect");
  return tls;
}
