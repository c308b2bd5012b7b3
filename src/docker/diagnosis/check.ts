/** One line of a diagnosis. */
export interface Check {
  /** Stable, for programs, e.g. `cgroups` or `CVE-2024-21626`. */
  id: string;
  title: string;
  /** "fail": brig cannot keep its promises here. "warn": it can, but something is worth doing. */
  status: "ok" | "warn" | "fail";
  /** What is there. */
  found: string;
  /** What to do about it; null when nothing is to do. */
  advice: string | null;
}

/** A check that went well, or one that did not and what to do then. */
export function check(
  about: { id: string; title: string; found: string },
  problem?: { status: "warn" | "fail"; advice: string } | undefined,
): Check {
  return { ...about, status: problem?.status ?? "ok", advice: problem?.advice ?? null };
}
