/** One attempt of test/fixtures/isolation-probes.py, and what a sandbox has to answer. */
export interface Probe {
  /** In the catalogue of assertions. */
  id: string;
  /** The name of the attempt in the program. */
  attempt: string;
  title: string;
  /** Every answer that is a refusal; a kernel may give several of them for several paths. */
  refusals: readonly string[];
  /** The user who attempts it in the weak twin, where it has to succeed, or why nobody does. Default: "root". */
  control?: "root" | "user" | { none: string };
  /** What the twin answers instead of success, where success would do harm. */
  controlAnswer?: string;
  /** In danger-full-access it is refused as everywhere else unless this says that it is allowed there. */
  fullAccess?: "allowed";
}

const nothing = ["nothing"];
const readOnly = ["EROFS", "EACCES", "ENOENT"];
const unreachable = ["ENETUNREACH", "EADDRNOTAVAIL"];
const leaves = { none: "a test sends nothing to the internet; the control is the host's own address" };

export const probes: readonly Probe[] = [
  {
    id: "A1",
    attempt: "engine-socket",
    title: "the engine's socket is not there",
    refusals: ["ENOENT"],
  },
  {
    id: "A2",
    attempt: "device-nodes",
    title: "/dev has no device of the machine",
    refusals: nothing,
  },
  {
    id: "A8",
    attempt: "host-processes",
    title: "no process of the host can be seen",
    refusals: nothing,
  },
  {
    id: "A9",
    attempt: "host-name",
    title: "the host's name is unknown",
    refusals: nothing,
  },
  {
    id: "A10",
    attempt: "setuid-program",
    title: "a setuid program that lies in the workspace gives no privileges",
    refusals: nothing,
    control: "user",
  },
  {
    id: "A11",
    attempt: "kernel-settings",
    title: "no setting of the kernel can be opened for writing",
    refusals: readOnly,
  },
  {
    id: "A11",
    attempt: "system-files",
    title: "no file of /sys can be opened for writing",
    refusals: readOnly,
  },
  {
    id: "A11",
    attempt: "kernel-memory",
    title: "the kernel's memory, timers and keys are not shown",
    refusals: ["ENODATA", "ENOENT", "EACCES"],
  },
  {
    id: "A11",
    attempt: "firmware",
    title: "the machine's firmware tables are not shown",
    refusals: nothing,
  },
  {
    id: "A12",
    attempt: "kernel-log",
    title: "the kernel's log cannot be read",
    refusals: ["EPERM"],
  },
  {
    id: "A14",
    attempt: "device-in-workspace",
    title: "no device can be made in the workspace",
    refusals: ["EPERM"],
  },
  {
    id: "A17",
    attempt: "host-file",
    title: "a file of the host that is in no writable directory is not there",
    refusals: ["ENOENT"],
  },
  {
    id: "A20",
    attempt: "environment-of-processes",
    title: "no process that can be seen has a variable of the host's",
    refusals: nothing,
  },
  {
    id: "A23",
    attempt: "login-files",
    title: "no home directory has keys or logins",
    refusals: nothing,
  },
  {
    id: "A25",
    attempt: "host-abstract-socket",
    title: "no socket without a file can be reached from another container or the host",
    refusals: ["ECONNREFUSED"],
  },
  {
    id: "A25",
    attempt: "host-sockets",
    title: "no such socket is even listed",
    refusals: nothing,
  },
  {
    id: "A26",
    attempt: "first-process",
    title: "the program of PID 1 cannot be opened for writing",
    refusals: ["EACCES", "EROFS"],
    controlAnswer: "ETXTBSY",
  },
  {
    id: "A27",
    attempt: "control-groups",
    title: "no control group can be opened for writing",
    refusals: readOnly,
  },
  {
    id: "B1",
    attempt: "system-write",
    title: "no file can be made in the system's directories",
    refusals: ["EROFS", "EACCES"],
    fullAccess: "allowed",
  },
  {
    id: "B4",
    attempt: "writable-places",
    title: "files can be made in no other place than the policy names",
    refusals: nothing,
    fullAccess: "allowed",
  },
  {
    id: "B6",
    attempt: "programs-in-scratch-space",
    title: "no program can be run in /run and /dev/shm",
    refusals: ["EACCES"],
    fullAccess: "allowed",
  },
  {
    id: "B8",
    attempt: "mount-propagation",
    title: "no mount made inside would appear on the host",
    refusals: nothing,
  },
  {
    id: "B5",
    attempt: "memory-without-size",
    title: "all directories in memory together are at most half of the memory",
    refusals: nothing,
    fullAccess: "allowed",
  },
  {
    id: "F19",
    attempt: "files-without-limit",
    title: "every directory in memory has a limit of files, which holds",
    refusals: nothing,
    fullAccess: "allowed",
  },
  {
    id: "F10",
    attempt: "container-log",
    title: "nothing can be written to the container's log",
    refusals: ["EACCES"],
  },
  {
    id: "E1",
    attempt: "interfaces",
    title: "there is no network interface but loopback",
    refusals: nothing,
    fullAccess: "allowed",
  },
  {
    id: "E2",
    attempt: "host-address",
    title: "the host cannot be reached at its own addresses",
    refusals: unreachable,
    fullAccess: "allowed",
  },
  {
    id: "E2",
    attempt: "public-addresses",
    title: "no public address can be reached",
    refusals: unreachable,
    control: leaves,
    fullAccess: "allowed",
  },
  {
    id: "E2",
    attempt: "public-addresses-6",
    title: "no public address can be reached over IPv6",
    refusals: unreachable,
    control: leaves,
    fullAccess: "allowed",
  },
  {
    id: "A16",
    attempt: "metadata-service",
    title: "no cloud's metadata service can be reached",
    refusals: unreachable,
    control: leaves,
    fullAccess: "allowed",
  },
  {
    id: "A16",
    attempt: "metadata-service-6",
    title: "nor over IPv6",
    refusals: unreachable,
    control: leaves,
    fullAccess: "allowed",
  },
  {
    id: "E3",
    attempt: "name-lookup",
    title: "nobody can be asked for a name",
    refusals: ["EAI_AGAIN", "EAI_NONAME"],
    control: leaves,
    fullAccess: "allowed",
  },
  {
    id: "E3",
    attempt: "datagram-out",
    title: "no datagram leaves",
    refusals: unreachable,
    control: leaves,
    fullAccess: "allowed",
  },
  {
    id: "E4",
    attempt: "host-loopback",
    title: "what listens on the host's loopback cannot be reached",
    refusals: ["ECONNREFUSED"],
  },
  {
    id: "E4",
    attempt: "host-loopback-datagram",
    title: "nor with a datagram",
    refusals: ["ECONNREFUSED"],
  },
  {
    id: "L1",
    attempt: "lease",
    title: "no lease of a file can be taken, which would stop the host's programs that open it",
    refusals: ["EPERM"],
  },
  {
    id: "L3",
    attempt: "kernel-events",
    title: "the kernel's events cannot be listened to",
    refusals: ["EPROTONOSUPPORT"],
  },
  {
    id: "L3",
    attempt: "interface-changes",
    title: "no interface can be changed over netlink",
    refusals: ["EPERM"],
  },
];

/** Whether an outcome is made of nothing but refusals. */
export function isRefused({ refusals }: Pick<Probe, "refusals">, outcome: string | undefined): boolean {
  return outcome?.split(" ").every((word) => refusals.includes(word)) === true;
}
