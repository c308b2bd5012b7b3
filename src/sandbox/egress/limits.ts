/** Limits that keep programs in a sandbox, and the servers that they reach, from using up the host. */
export interface EgressLimits {
  /** Connections of one sandbox at the same time. More are reset at once. Default 1024. */
  maxConnections: number;
  /** Names that one sandbox may use without a proxy. Each gets an address inside. Default 256. */
  maxNames: number;
  /** Time limit for looking up a name, and then for connecting to each of its addresses. Default 30 seconds. */
  connectTimeoutMs: number;
  /** Time limit for a program to send the head of each request. Default 30 seconds. */
  headTimeoutMs: number;
  /** How long a plain HTTP request may go on without a byte in either direction. Default 5 minutes. */
  idleTimeoutMs: number;
}

export const DEFAULT_EGRESS_LIMITS: EgressLimits = {
  maxConnections: 1024,
  maxNames: 256,
  connectTimeoutMs: 30_000,
  headTimeoutMs: 30_000,
  idleTimeoutMs: 300_000,
};
