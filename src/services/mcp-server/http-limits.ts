/** Limits of one HTTP service for all its clients together. All times are in milliseconds. */
export interface HttpLimits {
  maxConnections: number;
  /** Sessions at the same time. Each client of the protocol of 2025 has one; later clients have none. */
  maxSessions: number;
  /** A session ends when its client has been silent for so long. */
  idleMs: number;
  /** How long the head of a request may take to arrive. */
  headMs: number;
  /** How long a whole request may take to arrive. */
  requestMs: number;
  /** How long a client may leave an answer unread. */
  unreadMs: number;
}

export const defaultHttpLimits: HttpLimits = {
  maxConnections: 1024,
  maxSessions: 64,
  idleMs: 30 * 60_000,
  headMs: 10_000,
  requestMs: 60_000,
  unreadMs: 60_000,
};
