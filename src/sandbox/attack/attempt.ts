import type { Policy } from "../policy/policy.js";

/** One attempt of the toolbox's program `attempts`, and what a sandbox has to answer. */
export interface Attempt {
  /** The id in the catalogue of assertions, test/isolation/catalogue. */
  id: string;
  /** The name of the attempt in the program. */
  attempt: string;
  /** The statement that holds if it is refused. */
  title: string;
  /** The harm that a command can do if it is not refused. */
  meaning: string;
  /** Every answer that is a refusal; a kernel may give several of them for several paths. */
  refusals: readonly string[];
  /** The user who attempts it in the weak twin, where it has to succeed, or why nobody does. Default: "root". */
  control?: "root" | "user" | { none: string };
  /** The twin's answer in place of success, if success would do harm. */
  controlAnswer?: string;
  /** Settings of a policy, each of which allows it. Default: none does. */
  permittedBy?: readonly PermissionName[];
  /** It concerns the kernel alone. gVisor gives each sandbox one of its own, so it reaches nothing of the host there. */
  concernsKernel?: true;
}

export const nothing: readonly string[] = ["nothing"];

/** Whether an outcome is made of nothing but refusals. */
export function isRefused({ refusals }: Pick<Attempt, "refusals">, outcome: string | undefined): boolean {
  return outcome?.split(" ").every((word) => refusals.includes(word)) === true;
}

/** Whether the control of an attempt succeeded, so that a refusal elsewhere proves something. */
export function controlSucceeded({ controlAnswer }: Attempt, outcome: string | undefined): boolean {
  if (controlAnswer !== undefined) return outcome === controlAnswer;
  return outcome !== undefined && /^(?:done$|found )/.test(outcome);
}

/** A setting of a policy that allows attempts which are refused otherwise. */
interface Permission {
  /** Whether the policy has the setting. */
  isGiven(policy: Policy): boolean;
  /** The setting as it is written in a policy file. */
  setting(policy: Policy): string;
  /** The setting to write instead, so that the attempts are refused. */
  instead: string;
}

const tmpfsWithPrograms = ({ tmpfs }: Policy) =>
  tmpfs.find(({ path, exec }) => exec && (path === "/run" || path === "/dev/shm"));

const permissions = {
  network: {
    isGiven: ({ network }) => network.kind === "full",
    setting: () => 'network = "full"',
    instead: 'network = "none", or "allowlist:HOST,…"',
  },
  rootfs: {
    isGiven: ({ rootfs }) => rootfs === "rw",
    setting: () => 'rootfs = "rw"',
    instead: 'rootfs = "ro"',
  },
  scratchPrograms: {
    isGiven: (policy) => tmpfsWithPrograms(policy) !== undefined,
    setting: (policy) => `exec = true for the tmpfs ${tmpfsWithPrograms(policy)?.path ?? ""}`,
    instead: "exec = false",
  },
  workspace: {
    isGiven: ({ workspace }) => workspace.access === "rw",
    setting: () => 'workspace.access = "rw"',
    instead: 'workspace.access = "ro"',
  },
  protection: {
    isGiven: ({ workspace }) => workspace.access === "rw" && workspace.protected.length === 0,
    setting: () => "workspace.protected = []",
    instead: 'workspace.protected = [".git", ".codex", ".agents", ".brig"]',
  },
  capabilities: {
    isGiven: ({ capabilities }) => capabilities === "engine-default",
    setting: () => 'capabilities = "engine-default"',
    instead: 'capabilities = "none"',
  },
  rootCapabilities: {
    isGiven: ({ capabilities }) => capabilities !== "none",
    setting: ({ capabilities }) => `capabilities = "${capabilities}"`,
    instead: 'capabilities = "none"',
  },
  filter: {
    isGiven: ({ seccomp }) => seccomp === "engine-default",
    setting: () => 'seccomp = "engine-default"',
    instead: 'seccomp = "brig"',
  },
  setuid: {
    isGiven: ({ noNewPrivileges }) => !noNewPrivileges,
    setting: () => "noNewPrivileges = false",
    instead: "noNewPrivileges = true",
  },
} as const satisfies Record<string, Permission>;

type PermissionName = keyof typeof permissions;

/** The first of these settings that the policy has; null if it has none of them. */
export function permissionFor(
  { permittedBy = [] }: { permittedBy?: readonly PermissionName[] },
  policy: Policy,
): { setting: string; instead: string } | null {
  const permission = permittedBy
    .map((name): Permission => permissions[name])
    .find((one) => one.isGiven(policy));
  return permission === undefined
    ? null
    : { setting: permission.setting(policy), instead: permission.instead };
}
