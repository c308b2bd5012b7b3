/** One line of the diagnosis. */
export interface Check {
  /** Stable, for programs, e.g. `cgroups` or `CVE-2024-21626`. */
  id: string;
  title: string;
  /** "fail": brig cannot keep its promises here. "warn": it can, but something should be improved. */
  status: "ok" | "warn" | "fail";
  found: string;
  /** Advice for the user; null if nothing needs to be done. */
  advice: string | null;
}

/** Makes a check, which is ok unless there is a `problem`. */
export function check(
  about: { id: string; title: string; found: string },
  problem?: { status: "warn" | "fail"; advice: string } | undefined,
): Check {
  return { ...about, status: problem?.status ?? "ok", advice: problem?.advice ?? null };
}
