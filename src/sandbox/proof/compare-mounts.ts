import { sharedMemory, TERMINALS_PATH, TOOLBOX_PATH } from "../plan/create-body.js";
import { isAtOrBelow, isBelow } from "../plan/paths.js";
import type { Identity, OverlayLayers, PlannedTmpfs, SandboxPlan } from "../plan/plan.js";
import type { Difference } from "./difference.js";
import type { KernelReport } from "./kernel-report.js";
import { isReadOnly, type MountEntry } from "./mountinfo.js";

const RUNTIME_WRITABLE: Readonly<Record<string, string>> = {
  "/dev": "tmpfs",
  "/dev/mqueue": "mqueue",
  "/dev/pts": "devpts",
  "/dev/shm": "tmpfs",
  "/proc": "proc",
  "/sys/fs/cgroup": "tmpfs",
};

const DEVICES = ["console", "full", "null", "random", "tty", "urandom", "zero"];

/** Checks that every planned mount is as planned, and that no other mount is writable. */
export function compareMounts(plan: SandboxPlan, report: KernelReport): Difference[] {
  const { mounts } = report;
  if (mounts === null)
    return [
      { assertion: "B11-mounts", promised: "the mounts of the plan", kernel: "no readable mount table" },
    ];
  return [
    ...compareBinds(plan, mounts),
    ...plan.tmpfs.flatMap((tmpfs) => compareTmpfs(tmpfs, mounts)),
    ...compareTmpfs(sharedMemory(plan), mounts),
    ...compareRootfs(plan, mounts),
    ...compareKernelSettings(mounts),
    ...compareDevices(plan, mounts),
    ...compareTerminals(plan, mounts),
    ...compareWritable(plan, mounts),
    ...compareIdentities(plan, report),
    ...compareCovered(plan, report),
    ...comparePlaceholders(plan, mounts),
    ...compareAbsentNames(plan, mounts),
    ...compareOverlay(plan, report),
  ];
}

/** The mount that a path leads to: the last one made at the path or above it. */
function covering(mounts: readonly MountEntry[], path: string): MountEntry | undefined {
  return mounts.findLast((entry) => isAtOrBelow(path, entry.path));
}

function mountedAt(mounts: readonly MountEntry[], path: string): MountEntry | null {
  const entry = covering(mounts, path);
  return entry?.path === path ? entry : null;
}

function accessOf(entry: MountEntry | null): "ro" | "rw" | "absent" {
  if (entry === null) return "absent";
  return isReadOnly(entry) ? "ro" : "rw";
}

function compareBinds(plan: SandboxPlan, mounts: readonly MountEntry[]): Difference[] {
  const readOnly = [...plan.parents, ...plan.absentNames, TOOLBOX_PATH].map((path) => ({
    path,
    access: "ro" as const,
  }));
  const writable = plan.volumes.map(({ path }) => ({ path, access: "rw" as const }));
  const promised = [...plan.mounts, ...readOnly, ...writable];
  return promised.flatMap(({ path, access }): Difference[] => {
    const actual = accessOf(mountedAt(mounts, path));
    if (actual === access) return [];
    return [{ assertion: "B11-mounts", promised: `${quote(path)} ${access}`, kernel: actual }];
  });
}

/** An absent protected name is an empty directory in memory, not one of the tree. */
function compareAbsentNames({ absentNames }: SandboxPlan, mounts: readonly MountEntry[]): Difference[] {
  return absentNames.flatMap((path): Difference[] => {
    const entry = mountedAt(mounts, path);
    if (entry?.fileSystem === "tmpfs") return [];
    return [{ assertion: "B11-mounts", promised: `${quote(path)} tmpfs`, kernel: describe(entry) }];
  });
}

function compareTmpfs(tmpfs: PlannedTmpfs, mounts: readonly MountEntry[]): Difference[] {
  const { path, maxInodes } = tmpfs;
  const entry = mountedAt(mounts, path);
  if (entry?.fileSystem !== "tmpfs" || accessOf(entry) !== "rw" || sizeBytes(entry) !== tmpfs.sizeBytes)
    return [wrongTmpfs({ assertion: "B5-tmpfs", path, promised: `rw size=${tmpfs.sizeBytes}` }, entry)];
  const has = (option: string) => entry.options.includes(option);
  const options: (TmpfsOption & { isSet: boolean })[] = [
    { assertion: "B6-noexec", path, promised: "noexec", isSet: tmpfs.exec || has("noexec") },
    { assertion: "B6-nosuid-nodev", path, promised: "nosuid,nodev", isSet: has("nosuid") && has("nodev") },
    {
      assertion: "F8-inodes",
      path,
      promised: `nr_inodes=${maxInodes}`,
      isSet: superOption(entry, "nr_inodes") === String(maxInodes),
    },
  ];
  return options.filter(({ isSet }) => !isSet).map((option) => wrongTmpfs(option, entry));
}

interface TmpfsOption {
  assertion: Difference["assertion"];
  path: string;
  promised: string;
}

function wrongTmpfs({ assertion, path, promised }: TmpfsOption, entry: MountEntry | null): Difference {
  return { assertion, promised: `${quote(path)} tmpfs ${promised}`, kernel: describe(entry) };
}

/** Root owns /dev even without capabilities, and could replace /dev/null, which commands read. */
function compareDevices(plan: SandboxPlan, mounts: readonly MountEntry[]): Difference[] {
  if (plan.rootfs === "rw") return [];
  const entry = mountedAt(mounts, "/dev");
  if (accessOf(entry) === "ro") return [];
  return [{ assertion: "B18-devices", promised: "/dev ro", kernel: describe(entry) }];
}

/** The kernel shows the limit of an instance of devpts unless it is the machine's own. */
function compareTerminals({ limits }: SandboxPlan, mounts: readonly MountEntry[]): Difference[] {
  const entry = mountedAt(mounts, TERMINALS_PATH);
  const most = `max=${limits.terminals}`;
  if (entry?.fileSystem === "devpts" && entry.superOptions.includes(most)) return [];
  return [
    { assertion: "F20-terminals", promised: `${TERMINALS_PATH} devpts ${most}`, kernel: describe(entry) },
  ];
}

function compareRootfs(plan: SandboxPlan, mounts: readonly MountEntry[]): Difference[] {
  const actual = accessOf(mountedAt(mounts, "/"));
  if (actual === plan.rootfs) return [];
  return [{ assertion: "B1-rootfs", promised: `root file system ${plan.rootfs}`, kernel: actual }];
}

function compareKernelSettings(mounts: readonly MountEntry[]): Difference[] {
  return ["/proc/sys", "/sys"].flatMap((path): Difference[] => {
    const entry = covering(mounts, path) ?? null;
    if (accessOf(entry) === "ro") return [];
    return [{ assertion: "A11-kernel-settings", promised: `${path} ro`, kernel: describe(entry) }];
  });
}

function compareWritable(plan: SandboxPlan, mounts: readonly MountEntry[]): Difference[] {
  if (plan.rootfs === "rw") return [];
  const promised = new Set([
    "/",
    ...[...plan.mounts, ...plan.tmpfs, ...plan.volumes].map(({ path }) => path),
  ]);
  const isExpected = (entry: MountEntry) =>
    promised.has(entry.path) ||
    isRuntimeMount(entry) ||
    isCover(plan, entry) ||
    isInWritableBind(plan, entry);
  return mounts
    .filter((entry) => !isReadOnly(entry) && !isExpected(entry))
    .map((entry) => ({
      assertion: "B4-writable-mounts",
      promised: "no further writable mount",
      kernel: describe(entry),
    }));
}

/** Mounts of the host below a writable directory are visible in the sandbox too. */
function isInWritableBind({ mounts }: SandboxPlan, { path }: MountEntry): boolean {
  return mounts.findLast((mount) => isBelow(path, mount.path))?.access === "rw";
}

function isRuntimeMount({ path, fileSystem, root }: MountEntry): boolean {
  if (RUNTIME_WRITABLE[path] === fileSystem) return true;
  // /dev/null mounted over a file that commands may not read.
  if (isBelow(path, "/proc")) return root === "/null";
  // An engine that may not create devices mounts those of the host.
  return DEVICES.some((device) => path === `/dev/${device}` && root === `/${device}`);
}

function isCover({ covered }: SandboxPlan, { path, root }: MountEntry): boolean {
  return root === "/null" && covered.some((one) => one.path === path);
}

/** A path that is not covered shows the host's own file. If that file has been removed since, there is nothing to cover. */
function compareCovered({ covered }: SandboxPlan, { directories }: KernelReport): Difference[] {
  return covered.flatMap(({ path, identity }): Difference[] => {
    const actual = directories.get(path);
    if (actual?.dev !== identity.dev || actual.ino !== identity.ino) return [];
    return [{ assertion: "B22-listeners", promised: `${quote(path)} covered`, kernel: "the host's own" }];
  });
}

/** Finds a path that was replaced between the check and the mount: it leads to another inode. */
function compareIdentities({ mounts }: SandboxPlan, { directories }: KernelReport): Difference[] {
  return mounts.flatMap(({ path, identity }): Difference[] => {
    const actual = directories.get(path);
    if (identity === null || (actual?.dev === identity.dev && actual.ino === identity.ino)) return [];
    const number = ({ dev, ino }: Identity) => `device ${dev}, inode ${ino}`;
    const kernel = actual === undefined ? "unknown" : number(actual);
    return [{ assertion: "B10-identity", promised: `${quote(path)} is ${number(identity)}`, kernel }];
  });
}

/** Checks that the mounted directory is the placeholder created just before, not one that a link led to. */
function comparePlaceholders(plan: SandboxPlan, mounts: readonly MountEntry[]): Difference[] {
  const roots = plan.mounts.filter(({ kind }) => kind === "workspace" || kind === "writable-root");
  return plan.placeholders.flatMap((path): Difference[] => {
    const root = roots.findLast((mount) => isBelow(path, mount.path));
    const [outer, inner] = [mountedAt(mounts, root?.path ?? ""), mountedAt(mounts, path)];
    if (root === undefined || outer === null || inner === null) return [];
    const expected = `${outer.root === "/" ? "" : outer.root}${path.slice(root.path.length)}`;
    if (inner.device === outer.device && inner.root === expected) return [];
    return [
      {
        assertion: "B10-identity",
        promised: `${quote(path)} is the placeholder made there`,
        kernel: `${quote(inner.root)} of device ${inner.device}`,
      },
    ];
  });
}

function superOption(entry: MountEntry, name: string): string | undefined {
  return entry.superOptions.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1);
}

function sizeBytes(entry: MountEntry): number | null {
  const match = /^([0-9]{1,15})([kmg]?)$/.exec(superOption(entry, "size") ?? "");
  if (match === null) return null;
  const unit = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }[match[2] ?? ""] ?? 1;
  return Number(match[1]) * unit;
}

function describe(entry: MountEntry | null): string {
  if (entry === null) return "absent";
  return `${quote(entry.path)} ${entry.fileSystem} ${entry.options.join(",")} (${entry.superOptions.join(",")})`;
}

/** Escapes control characters, which must not reach a terminal. */
function quote(path: string): string {
  return JSON.stringify(path);
}

/** A kernel puts the number of the file system into the upper bits of an inode number. */
const INODE_BITS = 32n;

/**
 * Checks that the copy-on-write workspace has exactly the planned layers. The merged tree has inodes of its
 * own, so the mount table says of what it is made, and the inodes of a few entries say that the lower layer is
 * the directory that was checked on the host: the engine resolved its path a second time.
 */
export function compareOverlay({ overlay }: SandboxPlan, report: KernelReport): Difference[] {
  if (overlay === null) return [];
  const entry = report.mounts?.findLast(({ path }) => path === overlay.path) ?? null;
  return [...compareLayers(overlay, entry), ...compareLower(overlay, report)];
}

function compareLayers(overlay: OverlayLayers, entry: MountEntry | null): Difference[] {
  const planned = [`lowerdir=${overlay.lower}`, `upperdir=${overlay.upper}`, `workdir=${overlay.work}`];
  const missing = planned.filter((option) => entry?.superOptions.includes(option) !== true);
  const lowers = entry?.superOptions.filter((option) => option.startsWith("lowerdir")) ?? [];
  // The files of a directory that was renamed in the sandbox would be gone as soon as the host's directory is.
  const followsRenames = entry?.superOptions.includes("redirect_dir=on") === true;
  const isReadOnlyFileSystem = entry?.superOptions.includes("ro") === true;
  if (
    entry?.fileSystem === "overlay" &&
    missing.length === 0 &&
    lowers.length === 1 &&
    !isReadOnlyFileSystem &&
    !followsRenames
  )
    return [];
  const kernel = entry === null ? "absent" : `${entry.fileSystem} (${entry.superOptions.join(",")})`;
  const promised = `${JSON.stringify(overlay.path)} is an overlay with ${planned.join(", ")}, and without redirect_dir`;
  return [{ assertion: "B19-overlay", promised, kernel: JSON.stringify(kernel) }];
}

/** A program of the host may replace one of the entries meanwhile, but not all of them. */
function compareLower({ path, lower, witnesses }: OverlayLayers, report: KernelReport): Difference[] {
  if (witnesses.length === 0) return [];
  const isSame = witnesses.some((witness) => {
    const found = report.directories.get(witness.path);
    return found !== undefined && low(found.ino) === low(witness.ino);
  });
  if (isSame) return [];
  const promised = `${JSON.stringify(path)} shows the files of ${JSON.stringify(lower)}`;
  return [{ assertion: "B10-identity", promised, kernel: "other files, or none" }];
}

function low(ino: string): bigint {
  return BigInt.asUintN(Number(INODE_BITS), BigInt(ino));
}
