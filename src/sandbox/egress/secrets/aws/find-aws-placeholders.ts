import type { Endpoint } from "../../rules/decide.js";
import type { Denial, SigningProblem } from "../../rules/denial.js";
import { mayReceive, type RequestHead } from "../held-secret.js";
import type { HeldAwsSecret } from "./aws-keys.js";

/** A request that has to be signed anew before it is sent on. */
export interface AwsSigning {
  secret: HeldAwsSecret;
  authorization: AwsAuthorization;
}

export type FoundAwsPlaceholders =
  /** `signing` is null for a request without any of the placeholders. */
  { kind: "allowed"; signing: AwsSigning | null } | { kind: "denied"; denial: Denial };

const TOKEN_HEADER = "x-amz-security-token";

/**
 * Finds requests that are signed with a placeholder. A placeholder anywhere else than in the headers of such a signature
 * refuses the request.
 */
export function findAwsPlaceholders(
  head: RequestHead,
  { secrets, endpoint, isTls }: { secrets: readonly HeldAwsSecret[]; endpoint: Endpoint; isTls: boolean },
): FoundAwsPlaceholders {
  for (const secret of secrets) {
    const where = placeOf(head, secret);
    if (where === null) continue;
    const { name } = secret;
    if (!mayReceive(secret, endpoint, isTls)) {
      const way = mayReceive(secret, endpoint, true) ? "plain HTTP" : null;
      return { kind: "denied", denial: { kind: "secret", name, where: way } };
    }
    if (where.kind === "elsewhere")
      return { kind: "denied", denial: { kind: "secret", name, where: where.text } };
    const problem = where.kind === "problem" ? where.problem : outOfScope(secret, where.authorization);
    if (problem !== null) return { kind: "denied", denial: { kind: "signing", name, problem } };
    if (where.kind === "signed")
      return { kind: "allowed", signing: { secret, authorization: where.authorization } };
  }
  return { kind: "allowed", signing: null };
}

type Place =
  | { kind: "signed"; authorization: AwsAuthorization }
  | { kind: "problem"; problem: SigningProblem }
  | { kind: "elsewhere"; text: string };

/** Null for a request without any of the secret's placeholders. */
function placeOf({ headers, path }: RequestHead, { placeholders }: HeldAwsSecret): Place | null {
  const { accessKeyId, secretAccessKey, sessionToken } = placeholders;
  const all = [accessKeyId, secretAccessKey, ...(sessionToken === null ? [] : [sessionToken])];
  if (path.includes(accessKeyId)) return { kind: "problem", problem: { kind: "in-url" } };
  if (hasAny(path, all)) return { kind: "elsewhere", text: "this part of the URL" };
  let place: Place | null = null;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]?.toLowerCase() ?? "";
    const value = headers[at + 1] ?? "";
    if (hasAny(name.toUpperCase(), [accessKeyId]) || hasAny(headers[at] ?? "", all))
      return { kind: "elsewhere", text: "the header names" };
    if (!hasAny(value, all) && !hasAny(basicOf(value), all)) continue;
    if (name === TOKEN_HEADER && value === sessionToken) continue;
    const isSignature = name === "authorization" && value.startsWith("AWS4-") && place === null;
    if (!isSignature) return { kind: "elsewhere", text: `the header ${name}` };
    const reading = readAwsAuthorization(value);
    if (reading.kind === "signed" && reading.authorization.accessKeyId === accessKeyId) place = reading;
    else
      place = {
        kind: "problem",
        problem: { kind: reading.kind === "asymmetric" ? "asymmetric" : "unreadable" },
      };
  }
  // The token by itself, in a request that is signed with other keys or not at all.
  const hasToken = headers.some((text, at) => at % 2 === 1 && text === sessionToken);
  return (
    place ??
    (hasToken ? { kind: "elsewhere", text: `the header ${TOKEN_HEADER}, without a signature` } : null)
  );
}

function hasAny(text: string, placeholders: readonly string[]): boolean {
  return placeholders.some((one) => text.includes(one));
}

/** User and password of Basic authentication; empty for any other value. */
function basicOf(value: string): string {
  const [, encoded = ""] = /^basic +([A-Za-z0-9+/]+=*)$/i.exec(value) ?? [];
  return Buffer.from(encoded, "base64").toString("latin1");
}

function outOfScope(
  { regions, services }: HeldAwsSecret,
  { region, service }: AwsAuthorization,
): SigningProblem | null {
  if (regions !== null && !regions.includes(region)) return { kind: "region", region };
  if (services !== null && !services.includes(service)) return { kind: "service", service };
  return null;
}

/** An `Authorization` header of Signature Version 4. The signature is that of a placeholder, and worth nothing. */
interface AwsAuthorization {
  accessKeyId: string;
  region: string;
  service: string;
  /** Names in lower case. */
  signedHeaders: readonly string[];
}

type AwsAuthorizationReading =
  | { kind: "signed"; authorization: AwsAuthorization }
  /** Signed with an elliptic curve (Signature Version 4A), which takes another library. */
  | { kind: "asymmetric" }
  | { kind: "unreadable" };

const HEADER =
  /^AWS4-HMAC-SHA256 +Credential=([A-Za-z0-9]{1,128})\/\d{8}\/([a-z0-9-]{1,63})\/([a-z0-9-]{1,63})\/aws4_request *, *SignedHeaders=([a-z0-9!#$%&'*+.^_`|~;-]{1,4096}) *, *Signature=[0-9a-f]{64}$/;

function readAwsAuthorization(value: string): AwsAuthorizationReading {
  if (value.startsWith("AWS4-ECDSA-P256-SHA256")) return { kind: "asymmetric" };
  const [, accessKeyId, region, service, signedHeaders] = HEADER.exec(value) ?? [];
  if (
    accessKeyId === undefined ||
    region === undefined ||
    service === undefined ||
    signedHeaders === undefined
  )
    return { kind: "unreadable" };
  return {
    kind: "signed",
    authorization: { accessKeyId, region, service, signedHeaders: signedHeaders.split(";") },
  };
}
