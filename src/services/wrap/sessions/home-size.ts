import { BrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import { type TreeSize, treeSize } from "../../../lib/files/tree-size.js";
import type { WrappedSession } from "./wrapped-sessions.js";

export const DEFAULT_HOME_BYTES = 10 * 1024 ** 3;

/** Counting this many files takes about a second. A home with more files is as unwanted as one that is too large. */
const MAX_ENTRIES = 500_000;
/** The user is warned once the home has this share of the limit. */
const WARNED_SHARE = 0.8;

/** Measures the agent's home, up to a given size. Error: the signal's reason. */
export async function measureHome(home: string, maxBytes: number, signal?: AbortSignal): Promise<TreeSize> {
  return await treeSize(home, { maxBytes, maxEntries: MAX_ENTRIES, signal });
}

/** `1.2 GiB`, with a mark if it may be more. */
export function homeSizeText({ bytes, isPartial }: TreeSize): string {
  return `${isPartial ? "over " : ""}${formatBytes(bytes)}`;
}

/**
 * Refuses a session whose home takes more than the limit. There is no quota for a directory of the host, so an agent can
 * fill more while it runs. Error: `session.invalid`.
 */
export async function requireSmallHome(
  { name, home }: Pick<WrappedSession, "name" | "home">,
  { limit = DEFAULT_HOME_BYTES, signal }: { limit: number | undefined; signal: AbortSignal },
): Promise<void> {
  const size = await measureHome(home, limit, signal);
  const tooMany = size.entries >= MAX_ENTRIES;
  if (size.bytes <= limit && !tooMany) return;
  const what = tooMany ? `more than ${MAX_ENTRIES} files` : `over ${formatBytes(limit)}`;
  throw new BrigError(`the home of the session ${name} has ${what}, so its agent is not started`, {
    code: "session.invalid",
    hint: `remove what is not needed from ${home}, without running or opening anything there, ${tooMany ? "" : "or raise --home-limit, "}or begin anew after: brig wrap --remove ${name}`,
  });
}

/** The warning for the user at the end; empty for a home that is far from its limit. */
export async function homeWarning(
  { name, home }: Pick<WrappedSession, "name" | "home">,
  limit = DEFAULT_HOME_BYTES,
): Promise<string> {
  const size = await measureHome(home, limit);
  const isNear = size.bytes > limit * WARNED_SHARE || size.entries > MAX_ENTRIES * WARNED_SHARE;
  if (!isNear) return "";
  const now = `the home of the session ${name} has ${homeSizeText(size)} in ${size.entries} files`;
  return `brig: ${now}; with more than ${formatBytes(limit)} or ${MAX_ENTRIES} files it is not started again\n`;
}
