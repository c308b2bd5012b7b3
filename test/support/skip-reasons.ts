/** The name of a test or a group, with the reason behind it where there is one to skip it: the last lines of a test run count these reasons. */
export function withReason(name: string, reason: string | null): string {
  return reason === null ? name : `${name} [${reason}]`;
}
