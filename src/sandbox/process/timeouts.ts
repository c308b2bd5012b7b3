/**
 * The longest that a command may take, twenty days: Node's timers, one of which watches it, fire at once
 * beyond 24.8.
 */
export const MAX_TIMEOUT_MS = 20 * 24 * 3600 * 1000;
