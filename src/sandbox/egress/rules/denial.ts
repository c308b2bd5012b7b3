import type { AddressScope } from "./target.js";

/** Why a connection was refused, or ended. */
export type Denial =
  | { kind: "no-rule" }
  /** No rule allows it, and the user was asked. `reason` is in the user's words. */
  | { kind: "declined"; reason: string | null }
  /** The name is allowed, but stands for an address that is not. */
  | { kind: "address"; address: string; scope: AddressScope | "own" }
  /** Requests to some hosts need a rule, and any of them may be behind this address, which no entry names. */
  | { kind: "bare-address" }
  /** The target cannot be read, or in more than one way. */
  | { kind: "malformed" }
  /** The connection says that it is for another host: in its TLS greeting or its Host header. */
  | { kind: "other-name"; name: string }
  /** A TLS greeting without a name, or with an encrypted one. */
  | { kind: "no-name"; isEncrypted: boolean }
  /** Neither HTTP nor TLS, on a port that no rule names. */
  | { kind: "unknown-protocol" }
  | { kind: "method"; method: string }
  | { kind: "too-many"; limit: number }
  /** The host has rules for requests, and none allows this one. */
  | { kind: "request"; method: string; path: string }
  /** Two programs may read the request in two ways, and rules have to decide about it. */
  | { kind: "ambiguous"; what: string }
  /** `where` is null if the secret is not for this host at all. */
  | { kind: "secret"; name: string; where: string | null }
  /** The request is signed with the placeholder of a key of AWS, and cannot be signed with the key. */
  | { kind: "signing"; name: string; problem: SigningProblem }
  /** Requests to this host have to be seen, but are not HTTP/1 in a TLS connection that brig can end. */
  | { kind: "unreadable"; errno: string | null }
  /** `isLeak`: it has the canary. Otherwise something had it earlier, so the sandbox reaches nothing any more. */
  | { kind: "canary"; name: string; isLeak: boolean }
  /** The rules were changed while the connection was open. */
  | { kind: "rules-changed" };

/** One sentence for people and models, without what to do about it. */
export function describeDenial(denial: Denial, host: string): string {
  switch (denial.kind) {
    case "no-rule":
      return `no rule of this sandbox's network allow-list allows ${host}`;
    case "declined":
      return `the user declined the connection to ${host}${denial.reason === null ? "" : `: ${denial.reason}`}`;
    case "address":
      return `${host} stands for ${denial.address}, ${scopeText[denial.scope]}, which no rule names`;
    case "bare-address":
      return `${host} is an address, behind which may be a host with rules for requests: use the host's name`;
    case "malformed":
      return `"${host}" is not a host that can be read in only one way`;
    case "other-name":
      return `the connection to ${host} asks for ${denial.name} instead`;
    case "no-name":
      return denial.isEncrypted
        ? `the TLS connection to ${host} encrypts the name of its server (ECH)`
        : `the TLS connection to ${host} does not name its server (SNI)`;
    case "unknown-protocol":
      return `the connection to ${host} is neither HTTP nor TLS, and no rule names this port`;
    case "method":
      return `the method ${denial.method} is not allowed`;
    case "too-many":
      return `this sandbox already has ${denial.limit} connections open`;
    case "request":
      return `no rule for requests to ${host} allows ${denial.method} ${denial.path}`;
    case "ambiguous":
      return `the request to ${host} can be read in two ways: ${denial.what}`;
    case "secret":
      return denial.where === null
        ? `the secret ${denial.name} is not for ${host}, so its placeholder may not be sent there`
        : `the secret ${denial.name} may not be sent to ${host} in ${denial.where}`;
    case "signing":
      return `the request to ${host} cannot be signed with the secret ${denial.name}: ${describeSigningProblem(denial.problem)}`;
    case "unreadable":
      return denial.errno === null
        ? `rules for requests to ${host} need HTTP, and the connection is something else`
        : `the program and brig cannot agree on TLS for ${host} (${denial.errno}): it has to speak HTTP/1.1 and to trust the certificates of SSL_CERT_FILE`;
    case "canary":
      return denial.isLeak
        ? `what was sent to ${host} has the canary ${denial.name}, a secret that is not real and that nothing may send`
        : `a program has tried to send the canary ${denial.name}, so this sandbox reaches nothing any more`;
    case "rules-changed":
      return `the network allow-list was changed, and no longer allows ${host}`;
    default:
      return denial satisfies never;
  }
}

const scopeText: Record<AddressScope | "own", string> = {
  own: "an address of the machine that brig runs on",
  public: "a public address",
  metadata: "a metadata service",
  loopback: "a loopback address",
  "link-local": "a link-local address",
  private: "a private address",
  multicast: "a multicast address",
  reserved: "a reserved address",
};

/** Why a request that a program signed with a placeholder cannot be signed with the real key of AWS. */
export type SigningProblem =
  /** The signature is in the URL, as in URLs that are made to be passed on. */
  | { kind: "in-url" }
  /** Signature Version 4A. */
  | { kind: "asymmetric" }
  | { kind: "unreadable" }
  | { kind: "region"; region: string }
  | { kind: "service"; service: string }
  /** Each part of the body is signed, and each signature depends on the one before. */
  | { kind: "signed-chunks" }
  /** The checksum of the body is needed, and the body has more bytes than are kept for it. */
  | { kind: "body"; maxBytes: number }
  /** The request may be signed as one path and sent as another. */
  | { kind: "path" }
  /** The keys have expired, and others could not be read. */
  | { kind: "expired" }
  /** The header is there twice, or is not ASCII. */
  | { kind: "header"; header: string };

/** Text for the end of a sentence, with what to do instead. */
function describeSigningProblem(problem: SigningProblem): string {
  switch (problem.kind) {
    case "in-url":
      return "the signature is in the URL, and only signatures in the header Authorization are made anew";
    case "asymmetric":
      return "it has a signature of Version 4A; requests to one region have Version 4";
    case "unreadable":
      return "its header Authorization is not one of Signature Version 4";
    case "region":
      return `it is for the region ${problem.region}, which the settings do not list`;
    case "service":
      return `it is for the service ${problem.service}, which the settings do not list`;
    case "signed-chunks":
      return "each part of its body is signed; make the client send the body unsigned or in one piece, for example with chunkedEncodingEnabled(false) in Java";
    case "body":
      return `its body is too large (more than ${problem.maxBytes} bytes are not kept to be signed); send its checksum in x-amz-content-sha256`;
    case "path":
      return "its path can be read in two ways";
    case "expired":
      return "the keys have expired, and the command that prints them has failed or printed expired ones; the user has to run it by hand";
    case "header":
      return `its header ${problem.header} is there twice or is not ASCII`;
    default:
      return problem satisfies never;
  }
}
