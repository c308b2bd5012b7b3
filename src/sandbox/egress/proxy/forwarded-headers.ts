/** Headers that are only for the connection to the next program (RFC 9110, 7.6.1), besides those that `Connection` names. */
const HOP_BY_HOP = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
]);

/** A program cannot have these dropped by naming them in `Connection`. */
const NEVER_DROPPED = new Set(["host", "content-length", "authorization", "cookie"]);

/** Headers as names and values in turn, in their order and spelling, without those that are for this hop only. */
export function forwardedHeaders(rawHeaders: readonly string[]): string[] {
  const pairs = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [{ name, lower: name.toLowerCase(), value: rawHeaders[at + 1] ?? "" }] : [],
  );
  const named = pairs
    .filter(({ lower }) => lower === "connection")
    .flatMap(({ value }) => value.split(",").map((one) => one.trim().toLowerCase()))
    .filter((name) => !NEVER_DROPPED.has(name));
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  return pairs.filter(({ lower }) => !dropped.has(lower)).flatMap(({ name, value }) => [name, value]);
}

/** Returns the headers with another value of one, at its place; at the end if there was none. */
export function withHeader(headers: readonly string[], name: string, value: string): string[] {
  const others = headers.flatMap((text, at) => {
    const header = headers[at - (at % 2)] ?? "";
    return header.toLowerCase() === name ? [] : [text];
  });
  return [name === "host" ? "Host" : name, value, ...others];
}
