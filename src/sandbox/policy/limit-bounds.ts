/** Bounds of limits, for policies and for flags: a start with flags does not load the schema of policies. */
export const LIMIT_BOUNDS = {
  memoryMb: { min: 64 },
  cpus: { min: 0.01 },
  /** The most that the kernel takes for a control group. */
  pids: { min: 16, max: 4_194_304 },
} as const;
