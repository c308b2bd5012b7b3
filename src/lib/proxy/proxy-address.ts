/** A proxy that connects to the internet on this machine's behalf. */
export interface ProxyAddress {
  kind: "http" | "socks";
  host: string;
  port: number;
  /** Whether the connection to the proxy itself is TLS. */
  usesTls: boolean;
  /** Null without a user. */
  user: { name: string; password: string } | null;
}

const KINDS: Readonly<Record<string, Pick<ProxyAddress, "kind" | "port" | "usesTls">>> = {
  "http:": { kind: "http", port: 80, usesTls: false },
  "https:": { kind: "http", port: 443, usesTls: true },
  "socks5:": { kind: "socks", port: 1080, usesTls: false },
  "socks5h:": { kind: "socks", port: 1080, usesTls: false },
  "socks:": { kind: "socks", port: 1080, usesTls: false },
};

/** Reads `http://user:password@proxy:3128`, also without `http://`; null for what is not the URL of a proxy. */
export function parseProxyAddress(text: string): ProxyAddress | null {
  const full = text.includes("://") ? text : `http://${text}`;
  const url = URL.canParse(full) ? new URL(full) : null;
  const usual = url === null ? undefined : KINDS[url.protocol];
  if (url === null || usual === undefined || url.hostname === "") return null;
  const { username, password } = url;
  return {
    ...usual,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? usual.port : Number(url.port),
    user:
      username === "" && password === "" ? null : { name: decoded(username), password: decoded(password) },
  };
}

/** The address for people and messages: without the user and the password. */
export function describeProxy({ kind, host, port, usesTls }: ProxyAddress): string {
  const scheme = kind === "socks" ? "socks5" : usesTls ? "https" : "http";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The name and the value of the header, or nothing. */
export function authorizationHeader({ user }: ProxyAddress): string[] {
  if (user === null) return [];
  const encoded = Buffer.from(`${user.name}:${user.password}`).toString("base64");
  return ["Proxy-Authorization", `Basic ${encoded}`];
}

/** A password with a % that encodes nothing is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
