import { randomInt } from "node:crypto";
import { coversEndpoint, type Endpoint } from "../rules/decide.js";
import type { Denial } from "../rules/denial.js";

/** A secret with its placeholder. Only this process knows both. */
export interface HeldSecret {
  /** The variable in which programs find the placeholder. */
  name: string;
  value: string;
  placeholder: string;
  /** Patterns as in an allow-list. */
  hosts: readonly string[];
  /** Names in lower case. */
  headers: readonly string[];
  /** Parameters of URLs. */
  query: readonly string[];
  /** Whether it may be sent without TLS. */
  plainHttp: boolean;
}

/** Headers in which keys are usually sent, for secrets that name none. */
export const USUAL_HEADERS = [
  ...["authorization", "x-api-key", "api-key", "x-goog-api-key", "private-token", "x-auth-token"],
] as const;

/** Beginnings of keys of well-known services, which programs check. Longer ones come first. */
const KNOWN_PREFIX =
  /^(?:sk-ant-[a-z0-9]+-|sk-proj-|sk-or-v1-|sk-|github_pat_|gh[opsur]_|glpat-|xox[abprs]-|npm_|pypi-|hf_|AIza|AKIA|ASIA)/;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const RANDOM_CHARS = 40;

/** Random, but it begins like the secret if that begins like a key of a well-known service. */
export function newPlaceholder(value: string): string {
  const [prefix = ""] = KNOWN_PREFIX.exec(value) ?? [];
  const characters = Array.from({ length: RANDOM_CHARS }, () => ALPHABET[randomInt(ALPHABET.length)]);
  return prefix + characters.join("");
}

/** The part of a request that may have secrets: names and values of headers in turn, and the path with its query. */
export interface RequestHead {
  headers: readonly string[];
  path: string;
}

export type AppliedSecrets =
  | { kind: "applied"; headers: string[]; path: string }
  | { kind: "denied"; denial: Denial };

/** Replaces placeholders by their secrets where these may go. A placeholder anywhere else refuses the request. */
export function applySecrets(
  { headers, path }: RequestHead,
  { secrets, endpoint, isTls }: { secrets: readonly HeldSecret[]; endpoint: Endpoint; isTls: boolean },
): AppliedSecrets {
  let result = { headers: [...headers], path };
  for (const secret of secrets) {
    const isForHost = mayReceive(secret, endpoint, isTls);
    const refuse = (where: string): AppliedSecrets => ({
      kind: "denied",
      denial: { kind: "secret", name: secret.name, where: isForHost ? where : unsafeWay(secret, endpoint) },
    });
    const replaced = replaceInHeaders(result.headers, isForHost ? secret : { ...secret, headers: [] });
    if (replaced.left !== null) return refuse(`the header ${replaced.left}`);
    const url = replaceInQuery(result.path, isForHost ? secret : { ...secret, query: [] });
    if (url === null) return refuse("this part of the URL");
    result = { headers: replaced.headers, path: url };
  }
  return { kind: "applied", ...result };
}

/** Whether an endpoint may get a secret. Without TLS only if the secret says so: a host's port does not tell what is spoken there. */
export function mayReceive(
  { hosts, plainHttp }: Pick<HeldSecret, "hosts" | "plainHttp">,
  endpoint: Endpoint,
  isTls: boolean,
): boolean {
  return (isTls || plainHttp) && hosts.some((host) => coversEndpoint(host, endpoint));
}

/** Null for a host that the secret is not for at all. */
function unsafeWay(secret: HeldSecret, endpoint: Endpoint): string | null {
  return mayReceive(secret, endpoint, true) ? "plain HTTP" : null;
}

/** `left` is the name of a header in which the placeholder may not be. */
function replaceInHeaders(
  headers: readonly string[],
  secret: HeldSecret,
): { headers: string[]; left: string | null } {
  const replaced: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] ?? "";
    const lower = name.toLowerCase();
    const value = headers[at + 1] ?? "";
    const exchanged = exchange(value, secret);
    if (name.includes(secret.placeholder)) return { headers: [], left: "names" };
    if (exchanged !== value && !secret.headers.includes(lower)) return { headers: [], left: lower };
    replaced.push(name, exchanged);
  }
  return { headers: replaced, left: null };
}

/** Replaces the placeholder, also in the Base64 of a user and password, as git and curl send them. */
function exchange(value: string, { placeholder, value: secret }: HeldSecret): string {
  const [, scheme = "", encoded] = /^(basic +)([A-Za-z0-9+/]+=*)$/i.exec(value) ?? [];
  if (encoded === undefined) return value.replaceAll(placeholder, () => secret);
  const decoded = Buffer.from(encoded, "base64").toString("latin1");
  if (!decoded.includes(placeholder)) return value.replaceAll(placeholder, () => secret);
  const exchanged = decoded.replaceAll(placeholder, () => secret);
  return scheme + Buffer.from(exchanged, "latin1").toString("base64");
}

/** Null if the placeholder is where it may not be. */
function replaceInQuery(path: string, { placeholder, value, query }: HeldSecret): string | null {
  if (!path.includes(placeholder)) return path;
  const mark = path.indexOf("?");
  const pairs = mark === -1 ? [] : path.slice(mark + 1).split("&");
  const exchanged = pairs.map((pair) => {
    const equals = pair.indexOf("=");
    if (equals === -1 || !query.includes(pair.slice(0, equals))) return pair;
    const text = pair.slice(equals + 1).replaceAll(placeholder, () => encodeURIComponent(value));
    return `${pair.slice(0, equals)}=${text}`;
  });
  const result = mark === -1 ? path : `${path.slice(0, mark)}?${exchanged.join("&")}`;
  return result.includes(placeholder) ? null : result;
}
