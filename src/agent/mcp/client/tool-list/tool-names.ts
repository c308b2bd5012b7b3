import { createHash } from "node:crypto";

const MAX_NAME_CHARS = 64;
const HASH_CHARS = 12;

/** The name that a server gives its tool, and the name of that server in the configuration. */
export interface ToolIdentity {
  server: string;
  tool: string;
}

/**
 * The names under which a model calls the tools, in the order of `identities`: `<server>__<tool>` with other
 * characters than letters, digits, `_` and `-` replaced. Names that would be too long or the same get a hash.
 * Each has `__` or a hash in it, so none is the name of a tool of brig.
 */
export function modelNames(identities: readonly ToolIdentity[]): string[] {
  const plain = identities.map(({ server, tool }) => `${allowed(server)}__${allowed(tool)}`);
  const uses = new Map<string, number>();
  for (const name of plain) uses.set(name, (uses.get(name) ?? 0) + 1);
  const isKept = (name: string) => name.length <= MAX_NAME_CHARS && uses.get(name) === 1;
  const taken = new Set(plain.filter(isKept));
  return identities.map((identity, index) => {
    const name = plain[index] ?? "";
    return isKept(name) ? name : hashedName(name, identity, taken);
  });
}

/**
 * Tries further hashes while the name is taken: a server can choose a name that looks like one with a hash.
 */
function hashedName(name: string, { server, tool }: ToolIdentity, taken: Set<string>): string {
  for (let attempt = 0; ; attempt++) {
    const identity = attempt === 0 ? [server, tool] : [server, tool, String(attempt)];
    const hash = createHash("sha1").update(identity.join("\0")).digest("hex").slice(0, HASH_CHARS);
    const hashed = `${name.slice(0, MAX_NAME_CHARS - HASH_CHARS - 1)}_${hash}`;
    if (taken.has(hashed)) continue;
    taken.add(hashed);
    return hashed;
  }
}

function allowed(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, "_");
}
