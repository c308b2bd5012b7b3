import { HOST_NAME } from "../../../sandbox/index.js";

const LOOPBACK = /^(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])$/;

/** The allow-list's entry for the host of a URL; empty for a text that is not an HTTP or HTTPS URL. */
export function hostOf(url: string): string[] {
  const parsed = parsedUrl(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.hostname === "") return [];
  // This machine can be allowed only with a port, and over plain HTTP a key goes to this port only.
  const needsPort = parsed.hostname === HOST_NAME || parsed.protocol === "http:";
  const port = parsed.port === "" && needsPort ? defaultPort(parsed) : parsed.port;
  return [port === "" ? parsed.hostname : `${parsed.hostname}:${port}`];
}

export function isPlainHttp(url: string): boolean {
  return parsedUrl(url)?.protocol === "http:";
}

/** The URL as the sandbox needs it. Loopback there is the sandbox itself, so a model on this machine has another name. */
export function seenFromInside(url: string): { url: string; isMoved: boolean } {
  const parsed = parsedUrl(url);
  if (parsed === null || !LOOPBACK.test(parsed.hostname)) return { url, isMoved: false };
  parsed.hostname = HOST_NAME;
  return { url: parsed.href, isMoved: true };
}

function defaultPort({ protocol }: URL): string {
  return protocol === "http:" ? "80" : "443";
}

function parsedUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}
