import { appliesSeccomp, looksLikeGvisor, runtimeOf } from "../../src/sandbox/docker/diagnosis/gvisor.js";
import { testEngine } from "./engine.js";

/** The OCI runtime the suite runs on; undefined is the engine's own. */
export const testRuntime: string | undefined = process.env.BRIG_TEST_RUNTIME || undefined;

/** What gVisor does otherwise than the kernel itself, by test. One table, printed by runtime.test.ts. */
const gvisorDifferences = {
  "modes.setuid-bit":
    "gVisor without --oci-seccomp does not load our filter: the bit can be set, and NoNewPrivs leaves it without effect",
  "limits.pids":
    "the process limit counts the threads of gVisor as a whole, which ends when it is reached; with --ignore-cgroups there is none",
  "limits.memory":
    "the memory limit is that of gVisor as a whole, which ends when it is reached; with --ignore-cgroups there is none",
  "limits.cpus": "gVisor does not count how often it held its processes back",
  "modes.devices":
    "gVisor takes neither read-only nor masked paths: /dev and /proc are its own, and root inside may change them",
  "limits.ipc": "gVisor takes no limits of System V IPC, and its tmpfs has no limit of inodes",
  "limits.inodes": "gVisor's tmpfs has no limit of inodes",
  "pty.window-change": "gVisor resizes a terminal without sending SIGWINCH",
  "pty.dev-tty": "gVisor's /dev/tty does not open: Input/output error",
  "pty.foreground": "gVisor does not say which process group has a terminal's foreground",
  "files.sockets": "gVisor shows a socket that is bound in the workspace to no other container: ENOENT",
  "network.reach": "the runtime is configured with --network=none: there is no network to reach",
  "proc.of-pid-1":
    "gVisor lets a process of the same user read another's environ, maps and descriptor numbers, dumpable or not; its memory stays closed",
  "proc.signal-masks": "gVisor does not show signal masks in /proc/self/status",
  "files.unnamed":
    "gVisor has no unnamed files: a write whose worker is killed leaves its temporary file behind",
  "files.exchange": "this gVisor cannot exchange two names at once: EINVAL",
  "files.holes": "gVisor keeps no account of the holes of a sparse file: they are read as the zeros they are",
  "runner.unkillable":
    "gVisor lets a process kill and stop PID 1: the container ends, and every call with sandbox.gone",
  "runner.scheduling":
    "gVisor does not load our filter, and its processes are threads of its own, whose order the host decides",
  "runner.limits":
    "gVisor without --oci-seccomp does not load our filter: a command can lower the limits of PID 1, and end its session by it",
  "exec.argument-limit": "gVisor takes more arguments than the kernel does",
  "exec.text-busy": "gVisor runs a program that somebody is writing",
  "runner.descriptors":
    "this gVisor lets any process open the descriptors of PID 1: a command can disturb the session's stream there",
  "files.link-attributes":
    "gVisor of July 2024 answers EBADF to lgetxattr of a symbolic link: ls -l lists it, and complains",
  "soak.calls": "a call on gVisor takes several times as long: the soak makes 1 500 calls, not 10 000",
} as const satisfies Record<string, string>;

/** The same for Podman, whatever its runtime. */
const podmanDifferences = {
  "devices.runner-settings":
    "Podman takes no read-only paths: settings of PID 1 are hidden instead, and what is written to them goes nowhere",
  "devices.null": "on Podman not even root can move /dev/null: Device or resource busy",
  "ended.oom": "Podman keeps no record of a kill for want of memory",
  "ended.removed": "Podman's log does not say that a container was killed because somebody has removed it",
  "removal.own-end":
    "Podman starts a program to remove a container that has ended, which often takes longer than the second that brig waits for it before it asks",
  "trouble.inner-engine":
    "in a container of Podman, the engine that this test stops may not use /dev/console, and starts no container",
  "image.health-check":
    "Podman leaves health checks to systemd, so that none runs in a plain container of these tests either",
  "receipt.devices": "among the capabilities that Podman gives a container is none for devices",
} as const satisfies Record<string, string>;

/** And for Podman of this version or a newer one. */
const newPodman = 5;

const newPodmanDifferences = {
  "policy.dev":
    "Podman 5 makes /dev and its own /dev/shm read-only whenever the container's files are, also when it is not asked to",
} as const satisfies Record<string, string>;

export type DifferenceId =
  | keyof typeof gvisorDifferences
  | keyof typeof podmanDifferences
  | keyof typeof newPodmanDifferences;

/** Null where there is no engine, or this user may not use it: unit tests need none. */
const info = await testEngine()
  .then((engine) => engine.info())
  .catch(() => null);

export const isPodman: boolean = info?.product === "podman";

/** As the engine is configured with it; its name tells nothing. */
const runtime = testRuntime === undefined || info === null ? undefined : runtimeOf(info, testRuntime);

export const isGvisor: boolean = runtime !== undefined && looksLikeGvisor(runtime);

/** Those of the runtime or engine at hand. */
const differences: Partial<Record<DifferenceId, string>> = {
  ...(isGvisor && gvisorDifferences),
  ...(isPodman && podmanDifferences),
  ...(isPodman && Number.parseInt(info?.version ?? "", 10) >= newPodman && newPodmanDifferences),
};

/** Whether the runtime or engine at hand is known to differ here. */
export function differs(id: DifferenceId): boolean {
  return id in differences && !holdsAfterAll(id);
}

/** What gVisor does as the kernel does, when it is started so. */
function holdsAfterAll(id: DifferenceId): boolean {
  if (runtime === undefined) return false;
  return FILTERED.includes(id) && appliesSeccomp(runtime);
}

const FILTERED: readonly DifferenceId[] = ["modes.setuid-bit", "runner.limits"];

/** A test's name, with the reason behind it where the runtime or engine at hand makes the test skip. */
export function titled(id: DifferenceId, name: string): string {
  return differs(id) ? `${name} [not on ${testRuntime ?? "Podman"}: ${differences[id]}]` : name;
}

/** The table for the runtime and engine at hand, one line each. */
export function differenceLines(): string[] {
  return Object.entries(differences)
    .filter(([id]) => differs(id as DifferenceId))
    .map(([id, why]) => `${id}: ${why}`);
}
