import type { AddressScope } from "./address-scope.js";

/** Why a connection was refused, or ended. */
export type Denial =
  | { kind: "no-rule" }
  /** No rule allows it, and the user was asked. `reason` is in the user's words. */
  | { kind: "declined"; reason: string | null }
  /** The name is allowed, but stands for an address that is not. */
  | { kind: "address"; address: string; scope: AddressScope | "own" }
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
