/** Twenty days: the timers of Node, one of which watches each command, fire at once beyond 24.8 days. */
export const MAX_TIMEOUT_MS = 20 * 24 * 3600 * 1000;
