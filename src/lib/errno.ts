/** What the operating system calls the error, e.g. `ENOENT`; undefined for an error that is none of its own. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
