import type { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { isLoopbackHost, isLoopbackUrl } from "../../../lib/http/loopback.js";
import { Refusal } from "./refusal.js";

export interface KnownSitesOptions {
  /** Whether only this machine reaches the service. Then pages of all its ports may. */
  isLocal: boolean;
  /** The host that the service listens on; null for a socket. */
  host: string | null;
  /** Whether it listens on all addresses of this machine. */
  isWildcard: boolean;
  /** Further names of the service. */
  names: readonly string[];
  /** The one that clients are shown at the moment; null without TLS. */
  certificate: () => X509Certificate | null;
}

/** The names by which a service is known. */
export class KnownSites {
  readonly #options: KnownSitesOptions;
  readonly #names: ReadonlySet<string>;

  constructor(options: KnownSitesOptions) {
    this.#options = options;
    this.#names = new Set([options.host ?? "localhost", ...options.names].map((name) => name.toLowerCase()));
  }

  /** Error: a refusal with 403 for a request that a page of another site may have made. */
  refuseOthers({ headers: { host, origin } }: IncomingMessage): void {
    // A hostile site can let its name resolve to the address of the service, so that its pages reach it (DNS rebinding). The
    // Host header then has the site's name.
    if (!isLoopbackHost(host) && !this.#isOwn(host))
      throw this.#forbidden("the Host header names another machine");
    if (origin === undefined || (this.#options.isLocal && isLoopbackUrl(origin))) return;
    if (hostOfUrl(origin) !== host?.toLowerCase())
      throw this.#forbidden("pages of other sites are not served");
  }

  #isOwn(host: string | undefined): boolean {
    const name = host === undefined ? null : nameOfHost(host);
    if (name === null) return false;
    if (this.#names.has(name)) return true;
    const certificate = this.#options.certificate();
    if (isIP(name) === 0) return certificate?.checkHost(name) !== undefined;
    return (
      certificate?.checkIP(name) !== undefined || (this.#options.isWildcard && ownAddresses().includes(name))
    );
  }

  #forbidden(message: string): Refusal {
    return new Refusal(message, {
      status: 403,
      code: "serve.refused",
      hint: this.#options.isLocal
        ? "connect to 127.0.0.1 or localhost, or start the service with --allow-host NAME"
        : "connect to the address that the service listens on, to a name of its certificate, or start it with --allow-host NAME",
    });
  }
}

/** A name in small letters, or an address without brackets; null for what is none. */
function nameOfHost(host: string): string | null {
  return urlOf(`http://${host}`)?.hostname.replaceAll(/^\[|\]$/g, "") ?? null;
}

/** With the port, unless it is that of the protocol. */
function hostOfUrl(url: string): string | null {
  return urlOf(url)?.host ?? null;
}

function urlOf(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}
