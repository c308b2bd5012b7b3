import { basename, join, resolve } from "node:path";
import type { CliContext } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { watchFiles } from "../../lib/files/watch-files.js";
import { newToken, readTokenFile } from "../../lib/http/bearer-token.js";
import { isLocal } from "../../lib/http/listen.js";
import { AuditLog } from "./audit-log.js";
import { RenewedTls } from "./http/renewed-tls.js";
import type { HttpService } from "./http/serve-http.js";
import { clientOfToken, type ServedClient } from "./http/served-client.js";
import { hostsFor, readAuthority, readTlsFiles, selfSigned } from "./http/tls-identity.js";
import type { ServeFlags } from "./serve-flags.js";
import { readTokensFile } from "./tokens-file.js";

/** Who may use the service, and how it is reached. */
export interface Access extends AsyncDisposable {
  http: Pick<HttpService, "listen" | "tls" | "allowedHosts" | "clients" | "audit">;
  /** What is printed besides the address. */
  announced: Announced;
}

interface Announced {
  /** That of the only client, if it was made now. */
  token?: string | undefined;
  /** The file with the authority that clients have to know. */
  ca?: string | undefined;
  /** SHA-256 of that authority's certificate. */
  fingerprint?: string | undefined;
}

/** A thing that is read from files, and read again when they change. */
interface Reread<T> {
  value: T;
  files: readonly string[];
  read: () => Promise<void>;
}

/** Error: `usage.invalid`. */
export async function openAccess(
  flags: ServeFlags,
  context: CliContext,
  onWarning: (error: unknown) => void,
): Promise<Access> {
  refuseContradictions(flags);
  const { listen, allowHost: allowedHosts = [] } = flags;
  const { token, clients } = await openClients(flags, context);
  const { tls, ...authority } = await openTls(flags, context);
  const file = flags.auditLog;
  const audit = file === undefined ? undefined : await AuditLog.open(resolve(context.cwd, file), onWarning);
  const watched = [clients, ...(tls === undefined ? [] : [tls])].map(({ files, read }) =>
    watchFiles(files, async () => await read().catch(onWarning)),
  );
  return {
    http: { listen, tls: tls?.value, allowedHosts, clients: clients.value, audit },
    announced: { token, ...authority },
    async [Symbol.asyncDispose]() {
      for (const one of watched) one[Symbol.dispose]();
      await audit?.[Symbol.asyncDispose]();
    },
  };
}

/** Error: `usage.invalid`. */
function refuseContradictions(flags: ServeFlags): void {
  const { listen, tlsCert, tlsKey, tlsSelfSigned, tlsClientCa, insecureHttp, tokens, tokenFile } = flags;
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw invalidUsage("a certificate needs its key", "give --tls-cert and --tls-key together");
  const hasTls = tlsCert !== undefined || tlsSelfSigned === true;
  if (tlsCert !== undefined && tlsSelfSigned === true)
    throw invalidUsage("there are two certificates", "leave out --tls-self-signed, or --tls-cert");
  if (tlsClientCa !== undefined && !hasTls)
    throw invalidUsage(
      "certificates of clients need TLS",
      "add --tls-cert and --tls-key, or --tls-self-signed",
    );
  if (hasTls && listen.kind === "socket")
    throw invalidUsage(
      "a socket of this machine speaks no TLS",
      "leave out the flags for TLS, or give --listen a port",
    );
  if (!hasTls && !isLocal(listen) && listen.kind === "port" && insecureHttp !== true)
    throw invalidUsage(
      `other machines reach ${listen.host}:${listen.port}, and are served with TLS only: without it, whoever is in between reads tokens and changes commands`,
      "add --tls-cert and --tls-key, or --tls-self-signed for a lab, or listen on 127.0.0.1; behind a proxy that has TLS, --insecure-http",
    );
  if (tokens !== undefined && tokenFile !== undefined)
    throw invalidUsage("the clients are in two places", "leave out --token-file, or --tokens");
}

/** The clients at the moment. Error: `usage.invalid`. */
async function openClients(
  { tokens, tokenFile }: ServeFlags,
  { cwd }: CliContext,
): Promise<{ token?: string; clients: Reread<() => readonly ServedClient[]> }> {
  if (tokens === undefined && tokenFile === undefined) {
    const token = newToken();
    return { token, clients: reread([clientOfToken("client", token)], []) };
  }
  const paths = tokenFile?.map((file) => resolve(cwd, file)) ?? [resolve(cwd, `${tokens}`)];
  const read = async () =>
    tokenFile === undefined ? await readTokensFile(`${paths[0]}`) : await readTokenFiles(paths);
  return { clients: reread(await read(), paths, read) };
}

function reread(
  first: readonly ServedClient[],
  files: readonly string[],
  read: () => Promise<readonly ServedClient[]> = async () => first,
): Reread<() => readonly ServedClient[]> {
  let clients = first;
  return {
    value: () => clients,
    files,
    async read() {
      clients = await read();
    },
  };
}

/** Each has a name of its token. Error: `usage.invalid`. */
async function readTokenFiles(files: readonly string[]): Promise<ServedClient[]> {
  const clients: ServedClient[] = [];
  for (const file of files) {
    const client = clientOfToken("", await readTokenFile(file));
    if (clients.some(({ tokenHash }) => tokenHash.equals(client.tokenHash)))
      throw invalidUsage(
        `two token files have the same token, one of them is ${JSON.stringify(basename(file))}`,
        "give each client a token of its own",
      );
    // What belongs to a client is found again by the next service, in whatever order the files are given.
    clients.push({ ...client, name: client.tokenHash.toString("hex").slice(0, 32) });
  }
  return clients;
}

/** Error: `usage.invalid`. */
async function openTls(
  { listen, tlsCert, tlsKey, tlsSelfSigned, tlsClientCa, allowHost = [] }: ServeFlags,
  { cwd, environment }: CliContext,
): Promise<{ tls?: Reread<RenewedTls>; ca?: string; fingerprint?: string }> {
  const clientAuthority = tlsClientCa === undefined ? undefined : resolve(cwd, tlsClientCa);
  if (tlsCert !== undefined && tlsKey !== undefined) {
    const files = { cert: resolve(cwd, tlsCert), key: resolve(cwd, tlsKey), clientAuthority };
    const value = new RenewedTls(await readTlsFiles(files));
    const read = async () => value.renew(await readTlsFiles(files));
    return { tls: { value, files: Object.values(files).filter((file) => file !== undefined), read } };
  }
  if (tlsSelfSigned !== true) return {};
  const hosts = hostsFor(listen.kind === "port" ? listen.host : null, allowHost);
  const {
    identity,
    authorityFile: ca,
    fingerprint,
  } = await selfSigned(join(environment.brigHome, "serve-tls"), hosts);
  const withClients = async () => ({
    ...identity,
    ca: clientAuthority === undefined ? undefined : await readAuthority(clientAuthority),
  });
  const value = new RenewedTls(await withClients());
  const files = clientAuthority === undefined ? [] : [clientAuthority];
  return { tls: { value, files, read: async () => value.renew(await withClients()) }, ca, fingerprint };
}
