import { BrigError } from "../../errors.js";
import { type IpRange, parseRange, rangesContain } from "../../policy/hosts/ip-range.js";
import type { Endpoint } from "../rules/decide.js";

/** A proxy that connects to the internet on this machine's behalf. */
export interface UpstreamProxy {
  host: string;
  port: number;
  /** Whether the connection to the proxy itself is TLS. */
  usesTls: boolean;
  /** The value of `Proxy-Authorization`; null without a user. */
  authorization: string | null;
  bypassed: readonly Bypass[];
}

/** What an entry of NO_PROXY names. */
type Bypass = { port: number | null } & (
  | { kind: "all" }
  /** The name itself and all names below it. */
  | { kind: "name"; name: string }
  | { kind: "range"; range: IpRange }
);

type Variables = Readonly<Record<string, string | undefined>>;

/** The setting that stands for the proxy of `HTTPS_PROXY` or `ALL_PROXY`. */
const FROM_ENVIRONMENT = "environment";

/**
 * Reads `http://user:password@proxy:3128`, or "environment"; null if that has none. Hosts of `NO_PROXY` are reached
 * directly in either case. Error: `usage.invalid`, which does not repeat the text, since it may have a password.
 */
export function readUpstream(text: string, variables: Variables): UpstreamProxy | null {
  const either = (name: string) => variables[name] ?? variables[name.toUpperCase()];
  const isFromEnvironment = text === FROM_ENVIRONMENT;
  const written = isFromEnvironment ? (either("https_proxy") ?? either("all_proxy")) : text;
  if (written === undefined) return null;
  const full = written.includes("://") ? written : `http://${written}`;
  const url = URL.canParse(full) ? new URL(full) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.hostname === "") {
    const source = isFromEnvironment ? "HTTPS_PROXY of the environment" : "the upstream proxy";
    throw new BrigError(`${source} is not a URL of a proxy that brig can use`, {
      code: "usage.invalid",
      hint: "write http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before the host if it asks for them",
    });
  }
  const usesTls = url.protocol === "https:";
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (usesTls ? 443 : 80) : Number(url.port),
    usesTls,
    authorization: authorizationOf(url),
    bypassed: readBypassed(either("no_proxy") ?? ""),
  };
}

/** Whether NO_PROXY names the target. */
export function isBypassed({ bypassed }: UpstreamProxy, { target, port }: Endpoint): boolean {
  return bypassed.some((one) => {
    if (one.port !== null && one.port !== port) return false;
    if (one.kind === "all") return true;
    if (one.kind === "range") return target.kind === "address" && rangesContain([one.range], target.address);
    return target.kind === "name" && (target.name === one.name || target.name.endsWith(`.${one.name}`));
  });
}

function authorizationOf({ username, password }: URL): string | null {
  if (username === "" && password === "") return null;
  const pair = [username, password].map(decoded).join(":");
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}

/** A password with a % that encodes nothing is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** As curl reads it: names and addresses with commas or spaces between them. What cannot be read is left out. */
function readBypassed(list: string): Bypass[] {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .flatMap((entry): Bypass[] => {
      if (entry === "") return [];
      if (entry === "*") return [{ kind: "all", port: null }];
      const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(entry) ?? [];
      const range = parseRange(bracketed ?? plain ?? entry);
      const port = digits === undefined ? null : Number(digits);
      if (range !== null) return [{ kind: "range", range, port: parseRange(entry) === null ? port : null }];
      const name = plain?.replace(/^\*?\./, "");
      return name === undefined || name === "" ? [] : [{ kind: "name", name, port }];
    });
}
