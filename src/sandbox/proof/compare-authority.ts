import { BrigError } from "../../errors.js";
import type { ContainerBody, CreatedContainer } from "../docker/engine-types.js";
import { CONTAINER_HOSTNAME } from "../plan/create-body.js";
import type { Kernel, SandboxPlan } from "../plan/plan.js";
import type { Difference } from "./difference.js";
import { CAPABILITY_SETS, type KernelReport } from "./kernel-report.js";

/** Docker's default set, which gives no access to the host's devices, network or kernel. */
const ENGINE_DEFAULT_CAPABILITIES = 0xa80425fbn;
const CAP_MKNOD = 1n << 27n;
const CAP_SETFCAP = 1n << 31n;
/** CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER and FSETID, which are the first five. */
const TREE_CAPABILITIES = 0b11111n;

const CAPABILITIES: Readonly<Record<SandboxPlan["capabilities"], { mask: bigint; promised: string }>> = {
  none: { mask: 0n, promised: "no capability" },
  "full-access": {
    mask: ENGINE_DEFAULT_CAPABILITIES & ~CAP_MKNOD & ~CAP_SETFCAP,
    promised: "no capability beyond an engine's default, and neither MKNOD nor SETFCAP",
  },
  "engine-default": {
    mask: ENGINE_DEFAULT_CAPABILITIES,
    promised: "no capability beyond an engine's default",
  },
  tree: {
    mask: TREE_CAPABILITIES,
    promised: "no capability beyond CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER and FSETID",
  },
};

const WITHOUT_EFFECT = 0;
const EPERM = 1;
const ENOENT = 2;
const EACCES = 13;
const EINVAL = 22;
const EROFS = 30;
const ENOSYS = 38;
const ENODATA = 61;
const EPROTONOSUPPORT = 93;

/** The runner's probes, and the errno with which both of brig's seccomp profiles refuse each. */
const FILTERED: Readonly<Record<string, number>> = {
  "socket-vsock": EPERM,
  "socket-alg": EPERM,
  "socket-packet": EPERM,
  "io-uring": EPERM,
  "unshare-user": EPERM,
  mount: EPERM,
  bpf: EPERM,
  keyctl: EPERM,
  userfaultfd: EPERM,
  clone3: ENOSYS,
  "netlink-uevent": EPROTONOSUPPORT,
  "mknod-device": EPERM,
  "io-setup": ENOSYS,
  "lock-of-open-file": EINVAL,
  "affinity-of-others": WITHOUT_EFFECT,
};

/** Interfaces that kernels with tunnel modules add to every network namespace, down and without a route. */
const KERNEL_INTERFACES = [
  "erspan0",
  "gre0",
  "gretap0",
  "ip6_vti0",
  "ip6gre0",
  "ip6tnl0",
  "ip_vti0",
  "sit0",
  "tunl0",
];

/** Variables that engines add to every container's environment. */
const ENGINE_VARIABLES = /^(?:HOSTNAME|TERM|container)=[\w.-]*$/;

export function compareAuthority(plan: SandboxPlan, report: KernelReport): Difference[] {
  return [
    ...compareKernel(plan, report),
    ...compareCapabilities(plan, report),
    ...comparePrivileges(plan, report),
    ...compareUser(plan, report),
    ...compareNetwork(plan, report),
    ...compareEnvironment(plan, report),
    ...compareHostname(report),
  ];
}

function compareHostname({ hostname }: KernelReport): Difference[] {
  if (hostname === CONTAINER_HOSTNAME) return [];
  return [{ assertion: "A9-hostname", promised: CONTAINER_HOSTNAME, kernel: hostname ?? "unknown" }];
}

function compareKernel(plan: SandboxPlan, report: KernelReport): Difference[] {
  if (report.kernel === plan.kernel) return [];
  const name = (kernel: Kernel) => (kernel === "gvisor" ? "gVisor" : "the engine's own");
  return [{ assertion: "A0-kernel", promised: name(plan.kernel), kernel: name(report.kernel) }];
}

/** Compares what forbidden system calls answered: only an attempt shows that a filter works. */
export function compareSystemCalls(plan: SandboxPlan, report: KernelReport): Difference[] {
  const found: Difference[] = [];
  const expect = (assertion: Difference["assertion"], probe: string, allowed: number[]) => {
    const errno = report.probes.get(probe);
    if (errno !== undefined && allowed.includes(errno)) return;
    const promised = `${probe} fails with errno ${allowed.join(" or ")}`;
    found.push({ assertion, promised, kernel: errno === undefined ? "unknown" : `errno ${errno}` });
  };
  if (plan.seccomp === "brig") {
    expect("A10-setuid-bits", "chmod-setuid", [EPERM]);
    expect("N-system-calls", "ptrace", [EPERM]);
  }
  if (plan.seccomp !== "engine-default")
    // GVisor may answer EPERM in place of another errno, and its profile permits clone3: see
    // seccompForGvisor.
    for (const [probe, errno] of Object.entries(FILTERED))
      if (plan.kernel === "shared") expect("N-system-calls", probe, [errno]);
      else if (probe !== "clone3") expect("N-system-calls", probe, [EPERM]);
  for (const probe of ["read-slabinfo", "read-vmallocinfo"])
    expect("A11-kernel-settings", probe, [EPERM, ENOENT, EACCES, ENODATA]);
  if (plan.rootfs === "ro") expect("B1-rootfs", "write-root", [EROFS, EACCES, EPERM]);
  return found;
}

function compareCapabilities(plan: SandboxPlan, { identity }: KernelReport): Difference[] {
  const { mask: allowed, promised } = CAPABILITIES[plan.capabilities];
  // Older kernels do not report the ambient set, which is always a subset of the others.
  const needed = CAPABILITY_SETS.filter((set) => set !== "CapAmb" || identity.capabilities.has(set));
  return needed.flatMap((set): Difference[] => {
    const mask = identity.capabilities.get(set);
    if (mask !== undefined && (mask & ~allowed) === 0n) return [];
    return [{ assertion: "A3-capabilities", promised, kernel: `${set} ${mask?.toString(16) ?? "unknown"}` }];
  });
}

function comparePrivileges(plan: SandboxPlan, { identity }: KernelReport): Difference[] {
  const found: Difference[] = [];
  if (plan.noNewPrivileges && identity.noNewPrivileges !== true)
    found.push({
      assertion: "A4-no-new-privileges",
      promised: "setuid programs gain no privileges",
      kernel: `NoNewPrivs ${identity.noNewPrivileges ?? "unknown"}`,
    });
  if (plan.seccomp !== "engine-default" && identity.seccompMode !== 2)
    found.push({
      assertion: "A5-seccomp",
      promised: "a system call filter is on",
      kernel: `Seccomp ${identity.seccompMode ?? "unknown"}`,
    });
  return found;
}

function compareUser(plan: SandboxPlan, { identity }: KernelReport): Difference[] {
  const { uid, gid } = plan.user;
  const { uids, gids, groups } = identity;
  const isUser = uids?.every((id) => id === uid) === true && gids?.every((id) => id === gid) === true;
  // With capabilities the user is root, who keeps the groups that the image gives it.
  const groupsMatter = plan.capabilities === "none";
  const isGroup = groups?.every((id) => id === gid) === true;
  if (isUser && (isGroup || !groupsMatter)) return [];
  return [
    {
      assertion: "A6-user",
      promised: `uid ${uid}, gid ${gid}, no further group`,
      kernel: `uids ${uids ?? "unknown"}, gids ${gids ?? "unknown"}, groups ${groups ?? "unknown"}`,
    },
  ];
}

function compareNetwork(plan: SandboxPlan, { interfaces, routedInterfaces }: KernelReport): Difference[] {
  if (plan.network !== "none") return [];
  const unexpected = interfaces?.filter((name) => name !== "lo" && !KERNEL_INTERFACES.includes(name)) ?? [
    "unknown",
  ];
  const routes = routedInterfaces?.filter((name) => name !== "lo") ?? ["unknown"];
  if (unexpected.length === 0 && routes.length === 0) return [];
  return [
    {
      assertion: "E1-network",
      promised: "no interface but lo, and no route",
      kernel: `interfaces ${interfaces ?? "unknown"}, routes through ${routedInterfaces ?? "unknown"}`,
    },
  ];
}

/** The runner's environment is part of each command's. None of it may come from the image. */
function compareEnvironment(
  { containerEnvironment }: SandboxPlan,
  { environment }: KernelReport,
): Difference[] {
  const unexpected = environment?.filter((entry) => !isOwnVariable(entry, containerEnvironment)) ?? [
    "unknown",
  ];
  if (unexpected.length === 0) return [];
  const names = unexpected.map((entry) => JSON.stringify(entry.split("=", 1)[0]));
  return [{ assertion: "A21-environment", promised: "no variable from the image", kernel: names.join(", ") }];
}

/** Planned, the engine's own, or without a value, which is what remains of a removed variable. */
function isOwnVariable(entry: string, planned: Readonly<Record<string, string>>): boolean {
  const at = entry.indexOf("=");
  if (at === -1 || at === entry.length - 1 || ENGINE_VARIABLES.test(entry)) return true;
  return planned[entry.slice(0, at)] === entry.slice(at + 1);
}

/**
 * Refuses a container that differs from the request, or has settings of the image. Before the start, so that
 * nothing runs in it. Error: `policy.not-enforced`.
 */
export function requireAsRequested(body: ContainerBody, imageId: string, created: CreatedContainer): void {
  const different = compareCreated(body, imageId, created);
  if (different.length === 0) return;
  throw new BrigError(
    `the engine did not create the requested container from ${JSON.stringify(body.Image)}: ` +
      `${different.join(", ")} differs`,
    {
      code: "policy.not-enforced",
      hint: "nothing was started; the image may have been replaced meanwhile, or the engine cannot override its settings",
    },
  );
}

/** Names what differs from the request, as Dockerfile instructions. */
export function compareCreated(body: ContainerBody, imageId: string, created: CreatedContainer): string[] {
  const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);
  const isAsRequested: Record<string, boolean> = {
    FROM: created.imageId === imageId,
    ENTRYPOINT: isSame(created.entrypoint, body.Entrypoint),
    CMD: isSame(created.cmd, body.Cmd),
    USER: created.user === body.User,
    WORKDIR: created.workingDir === body.WorkingDir,
    STOPSIGNAL: created.stopSignal === body.StopSignal,
    HEALTHCHECK: isSame(created.healthcheck, ["NONE"]),
    ENV: isEnvironment(body.Env, created.env),
    LABEL: isSame(sorted(created.labels), sorted(body.Labels)),
  };
  return Object.keys(isAsRequested).filter((name) => !isAsRequested[name]);
}

function isEnvironment(requested: readonly string[], created: readonly string[]): boolean {
  return (
    requested.filter((entry) => entry.includes("=")).every((entry) => created.includes(entry)) &&
    created.every((entry) => requested.includes(entry) || isOwnVariable(entry, {}))
  );
}

function sorted(labels: Record<string, string>): [string, string | undefined][] {
  return Object.keys(labels)
    .toSorted()
    .map((name) => [name, labels[name]]);
}
