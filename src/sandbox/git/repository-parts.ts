/** The names in lower case. */
export const REPOSITORY_PARTS: ReadonlySet<string> = new Set(["head", "objects", "refs", "commondir"]);

/** Whether git looks for this name in a directory to find out whether it is a repository. */
export function isRepositoryPart(name: string): boolean {
  return REPOSITORY_PARTS.has(name.toLowerCase());
}

/**
 * Whether git takes a directory with these parts, in lower case, for a repository, whatever it is called. The objects
 * and refs may be in another directory, which `commondir` names. Case does not matter on some file systems.
 */
export function isRepository(parts: ReadonlySet<string>): boolean {
  return parts.has("head") && (parts.has("commondir") || (parts.has("objects") && parts.has("refs")));
}
