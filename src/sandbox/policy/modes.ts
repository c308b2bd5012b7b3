/** The three policies that come with brig, strictest first, as on the command line. */
export const SANDBOX_MODES = ["read-only", "workspace-write", "danger-full-access"] as const;
/** One of the policies that come with brig. */
export type SandboxMode = (typeof SANDBOX_MODES)[number];
export const DEFAULT_MODE: SandboxMode = "workspace-write";

export function isSandboxMode(name: string): name is SandboxMode {
  return SANDBOX_MODES.some((mode) => mode === name);
}
