import { isBrigError } from "../../errors.js";
import type { Kernel } from "../plan/plan.js";
import { type MountEntry, parseMountinfo } from "./mountinfo.js";

/**
 * The kernel's statements about a sandbox, as the runner read them inside. They come out of a container: anything that is
 * missing or malformed becomes null or absent, and proves nothing.
 */
export interface KernelReport {
  /** "shared" unless the kernel identifies itself as gVisor, since "shared" has the stricter checks. */
  kernel: Kernel;
  identity: ProcessIdentity;
  mounts: MountEntry[] | null;
  /** The limits by their names in /proc/self/limits, e.g. "Max open files". Infinity means unlimited. */
  resourceLimits: Map<string, { soft: number; hard: number }>;
  interfaces: string[] | null;
  routedInterfaces: string[] | null;
  hostname: string | null;
  /** The runner's environment, as `NAME=value`. */
  environment: string[] | null;
  /** The names of all processes. */
  processes: string[] | null;
  cgroup: CgroupLimits;
  /** Sysctls of the IPC namespace by name, e.g. "kernel.shmall". */
  settings: Map<string, string>;
  /** The errno of each probe, which attempts something forbidden. 0 means that it was allowed. */
  probes: Map<string, number>;
  /** The attributes of mounted directories, by absolute path. */
  directories: Map<string, DirectoryReport>;
}

export interface DirectoryReport {
  dev: string;
  ino: string;
  /** The type and the permissions. */
  mode: number;
  uid: number;
  gid: number;
  /** The time at which its owner, mode or content last changed, in nanoseconds. */
  changedNs: bigint;
}

/** The runner's credentials, which every command has too. Null where the kernel does not say. */
interface ProcessIdentity {
  /** Real, effective, saved and file system uid. */
  uids: number[] | null;
  gids: number[] | null;
  groups: number[] | null;
  noNewPrivileges: boolean | null;
  /** 0 is off, 1 strict, 2 filter. */
  seccompMode: number | null;
  /** The values of those of the five sets that the kernel reports. */
  capabilities: Map<CapabilitySet, bigint>;
}

/** Infinity means no limit; null means that the kernel does not say. */
interface CgroupLimits {
  memoryBytes: number | null;
  swapBytes: number | null;
  pids: number | null;
  cpus: number | null;
}

/** The inheritable, permitted, effective, bounding and ambient set. */
export const CAPABILITY_SETS = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] as const;
type CapabilitySet = (typeof CAPABILITY_SETS)[number];

/** The kernel's version as every release of gVisor reports it. */
const GVISOR_VERSION = "#1 SMP Sun Jan 10 15:06:54 PST 2016";
const SECTION_MAX_BYTES = 1024 * 1024;
const LINES_MAX = 10_000;
const CGROUP = "/sys/fs/cgroup";
/** Cgroup v1 writes "no limit" as the largest page-aligned number. */
const CGROUP_V1_UNLIMITED = 2 ** 62;

export function parseReport(sections: ReadonlyMap<string, Uint8Array>): KernelReport {
  const text = (name: string) => sectionText(sections, name);
  return {
    kernel: parseKernel(text("uname")),
    identity: parseIdentity(text("/proc/self/status")),
    mounts: parseMounts(sections.get("/proc/self/mountinfo")),
    resourceLimits: parseResourceLimits(text("/proc/self/limits")),
    interfaces: parseInterfaces(text("/proc/net/dev")),
    routedInterfaces: parseRoutes(text("/proc/net/route"), text("/proc/net/ipv6_route")),
    hostname: text("/proc/sys/kernel/hostname")?.trimEnd() ?? null,
    environment: parseStrings(text("environment")),
    processes: parseStrings(text("processes")),
    cgroup: parseCgroup((file) => text(`${CGROUP}/${file}`)?.trim() ?? null),
    settings: parseSettings(sections),
    probes: parseProbes(sections),
    directories: parseDirectories(sections),
  };
}

/** `uname`: release and version on a line each. Newer gVisor releases end the first in "-gvisor". */
function parseKernel(uname: string | null): Kernel {
  const [release = "", version] = (uname ?? "").split("\n");
  return version === GVISOR_VERSION || release.endsWith("-gvisor") ? "gvisor" : "shared";
}

function sectionText(sections: ReadonlyMap<string, Uint8Array>, name: string): string | null {
  const bytes = sections.get(name);
  return bytes === undefined || bytes.byteLength > SECTION_MAX_BYTES
    ? null
    : Buffer.from(bytes).toString("utf8");
}

function lines(text: string): string[] {
  return text.split("\n", LINES_MAX);
}

function parseIdentity(status: string | null): ProcessIdentity {
  const fields = new Map(lines(status ?? "").map((line) => splitOnce(line, ":")));
  const numbers = (name: string) => parseNumbers(fields.get(name));
  const four = (ids: number[] | null) => (ids?.length === 4 ? ids : null);
  const flag = fields.get("NoNewPrivs");
  return {
    uids: four(numbers("Uid")),
    gids: four(numbers("Gid")),
    groups: numbers("Groups"),
    noNewPrivileges: flag === "0" || flag === "1" ? flag === "1" : null,
    seccompMode: numbers("Seccomp")?.[0] ?? null,
    capabilities: new Map(
      CAPABILITY_SETS.flatMap((set) => {
        const mask = parseMask(fields.get(set));
        return mask === null ? [] : [[set, mask]];
      }),
    ),
  };
}

function parseStrings(text: string | null): string[] | null {
  return text === null ? null : text.split("\0", LINES_MAX).filter((entry) => entry !== "");
}

function parseNumbers(text: string | undefined): number[] | null {
  if (text === undefined) return null;
  const words = text.split(/\s+/).filter((word) => word !== "");
  return words.every((word) => /^[0-9]{1,10}$/.test(word)) ? words.map(Number) : null;
}

function parseMask(text: string | undefined): bigint | null {
  return text !== undefined && /^[0-9a-f]{1,16}$/.test(text) ? BigInt(`0x${text}`) : null;
}

function splitOnce(line: string, separator: string): [string, string] {
  const at = line.indexOf(separator);
  return at === -1 ? [line, ""] : [line.slice(0, at), line.slice(at + separator.length).trim()];
}

function parseMounts(table: Uint8Array | undefined): MountEntry[] | null {
  if (table === undefined) return null;
  try {
    return parseMountinfo(table);
  } catch (error) {
    if (isBrigError(error)) return null;
    throw error;
  }
}

function parseResourceLimits(table: string | null): Map<string, { soft: number; hard: number }> {
  const rows = lines(table ?? "").map((line) => /^(Max [a-z ]+?) {2,}(\S+) +(\S+)/.exec(line));
  const limits = new Map<string, { soft: number; hard: number }>();
  for (const row of rows) {
    const soft = parseLimit(row?.[2] ?? null, "unlimited");
    const hard = parseLimit(row?.[3] ?? null, "unlimited");
    if (row?.[1] !== undefined && soft !== null && hard !== null) limits.set(row[1], { soft, hard });
  }
  return limits;
}

function parseLimit(text: string | null, unlimited: string | null): number | null {
  if (text !== null && text === unlimited) return Number.POSITIVE_INFINITY;
  return text !== null && /^[0-9]{1,19}$/.test(text) ? Number(text) : null;
}

/** Two header lines, then `name: counters`. */
function parseInterfaces(table: string | null): string[] | null {
  if (table === null) return null;
  return lines(table)
    .slice(2)
    .filter((line) => line.includes(":"))
    .map((line) => splitOnce(line, ":")[0].trim());
}

/** IPv4 lines begin with the interface, after a header line. IPv6 lines end with it. */
function parseRoutes(ipv4: string | null, ipv6: string | null): string[] | null {
  if (ipv4 === null && ipv6 === null) return null;
  const words = (line: string) => line.split(/\s+/).filter((word) => word !== "");
  const first = lines(ipv4 ?? "")
    .slice(1)
    .map((line) => words(line)[0]);
  const last = lines(ipv6 ?? "").map((line) => words(line).at(-1));
  return [...new Set([...first, ...last].filter((name) => name !== undefined))];
}

function parseCgroup(read: (file: string) => string | null): CgroupLimits {
  return read("memory.max") !== null || read("pids.max") !== null ? parseCgroupV2(read) : parseCgroupV1(read);
}

function parseCgroupV2(read: (file: string) => string | null): CgroupLimits {
  const [, quota, period] = /^(\S+) (\S+)$/.exec(read("cpu.max") ?? "") ?? [];
  return {
    memoryBytes: parseLimit(read("memory.max"), "max"),
    swapBytes: parseLimit(read("memory.swap.max"), "max"),
    pids: parseLimit(read("pids.max"), "max"),
    cpus: quotient(parseLimit(quota ?? null, "max"), parseLimit(period ?? null, null)),
  };
}

function parseCgroupV1(read: (file: string) => string | null): CgroupLimits {
  const bytes = (file: string) => {
    const limit = parseLimit(read(file), null);
    return limit !== null && limit >= CGROUP_V1_UNLIMITED ? Number.POSITIVE_INFINITY : limit;
  };
  const memoryBytes = bytes("memory/memory.limit_in_bytes");
  const memoryAndSwapBytes = bytes("memory/memory.memsw.limit_in_bytes");
  const quota = parseLimit(read("cpu/cpu.cfs_quota_us"), "-1");
  return {
    memoryBytes,
    swapBytes: difference(memoryAndSwapBytes, memoryBytes),
    pids: parseLimit(read("pids/pids.max"), "max"),
    cpus: quotient(quota, parseLimit(read("cpu/cpu.cfs_period_us"), null)),
  };
}

function quotient(quota: number | null, period: number | null): number | null {
  return quota === null || period === null || period === 0 ? null : quota / period;
}

function difference(larger: number | null, smaller: number | null): number | null {
  if (larger === null || smaller === null) return null;
  return larger === Number.POSITIVE_INFINITY ? larger : larger - smaller;
}

function parseProbes(sections: ReadonlyMap<string, Uint8Array>): Map<string, number> {
  const probes = new Map<string, number>();
  for (const name of withPrefix(sections, "probe/")) {
    const errno = sectionText(sections, `probe/${name}`) ?? "";
    if (/^[0-9]{1,3}$/.test(errno)) probes.set(name, Number(errno));
  }
  return probes;
}

/** Replaces the tabs between several numbers with spaces. */
function parseSettings(sections: ReadonlyMap<string, Uint8Array>): Map<string, string> {
  const prefix = "/proc/sys/";
  return new Map(
    withPrefix(sections, prefix).map((path) => {
      const text = sectionText(sections, `${prefix}${path}`) ?? "";
      return [path.replaceAll("/", "."), text.trim().replaceAll(/\s+/g, " ")];
    }),
  );
}

function parseDirectories(sections: ReadonlyMap<string, Uint8Array>): Map<string, DirectoryReport> {
  const directories = new Map<string, DirectoryReport>();
  for (const path of withPrefix(sections, "stat/")) {
    const text = sectionText(sections, `stat/${path}`) ?? "";
    const match =
      /^([0-9]{1,20}) ([0-9]{1,20}) ([0-7]{1,10}) ([0-9]{1,10}) ([0-9]{1,10}) (-?[0-9]{1,20})$/.exec(text);
    if (match === null) continue;
    const [, dev = "", ino = "", mode = "", uid, gid, changed = ""] = match;
    directories.set(path, {
      dev,
      ino,
      mode: Number.parseInt(mode, 8),
      uid: Number(uid),
      gid: Number(gid),
      changedNs: BigInt(changed),
    });
  }
  return directories;
}

function withPrefix(sections: ReadonlyMap<string, Uint8Array>, prefix: string): string[] {
  return [...sections.keys()]
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length));
}
