import { coversEndpoint, type Endpoint } from "../rules/decide.js";
import { USUAL_HEADERS } from "./held-secret.js";

/** Headers that requests to a host get on their way out, in place of those of the program. They are only sent in TLS. */
export interface SentHeaders {
  /** As in an allow-list, in its normal spelling. */
  host: string;
  headers: Readonly<Record<string, string>>;
}

/** Those of the host itself, else those of the longest wildcard that covers it. Null if there are none. */
export function sentHeadersFor(endpoint: Endpoint, sent: readonly SentHeaders[]): SentHeaders | null {
  const covering = sent.filter(({ host }) => coversEndpoint(host, endpoint));
  const [nearest = null] = covering.toSorted(
    (one, other) => rank(other) - rank(one) || other.host.length - one.host.length,
  );
  return nearest;
}

function rank({ host }: SentHeaders): number {
  return host.startsWith("*") ? 0 : 1;
}

/** Names and values in turn. */
export function withSentHeaders(headers: readonly string[], { headers: sent }: SentHeaders): string[] {
  const names = new Set(Object.keys(sent).map((name) => name.toLowerCase()));
  const others = headers.filter((_, at) => !names.has((headers[at - (at % 2)] ?? "").toLowerCase()));
  return [...others, ...Object.entries(sent).flat()];
}

const CREDENTIAL_NAME = /auth|token|secret|key|password|cookie/i;
/** Shorter ones would be found in harmless parts of outputs. */
const CREDENTIAL_MIN_CHARS = 8;

/** What has to be hidden of them: the words, without a scheme such as Bearer, of headers that usually have credentials. */
export function credentialsIn(sent: readonly SentHeaders[]): string[] {
  const values = sent.flatMap(({ headers }) =>
    Object.entries(headers).flatMap(([name, value]) =>
      CREDENTIAL_NAME.test(name) || USUAL_HEADERS.some((usual) => usual === name.toLowerCase())
        ? [value]
        : [],
    ),
  );
  return values
    .flatMap((value) => value.split(/[\s,;]+/))
    .filter(({ length }) => length >= CREDENTIAL_MIN_CHARS);
}
