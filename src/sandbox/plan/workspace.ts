import { constants, realpathSync } from "node:fs";
import { lstat, open, readFile, realpath } from "node:fs/promises";
import { dirname, isAbsolute, normalize } from "node:path";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import type { UserGitConfig } from "../git/user-config.js";
import { type MountEntry, parseMountinfo } from "../proof/mountinfo.js";
import { isAtOrBelow, isBelow } from "./paths.js";
import type { Identity } from "./plan.js";

/** A directory of the host that a sandbox may see. */
export interface CheckedDirectory {
  /** The path without symbolic links. */
  path: string;
  /** The identity that the path must still have inside the container. */
  identity: Identity;
}

export interface HostDirectories {
  /** The user's home directory, absolute; null if there is none. */
  homeDirectory: string | null;
  /** Configuration of git that applies to every repository; undefined if it is not to be obeyed. */
  gitConfig?: UserGitConfig | undefined;
  /** Brig's and Codex's. No sandbox may write to them, nor read one that contains a login. */
  configDirectories?: readonly string[] | undefined;
  /** Default: `/proc`. A machine without it cannot list submounts and sockets. */
  procDirectory?: string | undefined;
}

export interface DirectoryCheck {
  /** The use of the directory, for messages: "workspace" or "writable directory". */
  purpose: string;
  endpoint: string;
  dockerRootDir: string;
  host: HostDirectories;
}

/** A sandbox may see no directory at, above or below these. */
const CLOSED_TREES = [
  "/.brig",
  "/bin",
  "/boot",
  "/dev",
  "/etc",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/proc",
  "/run",
  "/sbin",
  "/sys",
  "/usr",
  "/var/lib/containerd",
  "/var/lib/containers",
  "/var/lib/docker",
  "/var/lib/kubelet",
  "/var/run",
  "/var/spool/cron",
];
const OPEN_BELOW_CLOSED = ["/usr/src", "/usr/local/src"];
/** A sandbox may see directories below these, but not these themselves. */
const CLOSED_PLACES = [
  "/",
  "/home",
  "/root",
  "/opt",
  "/srv",
  "/mnt",
  "/media",
  "/usr/src",
  "/usr/local/src",
  "/var",
];
/** The directories directly in these are home directories, with all their secrets. */
const HOMES = ["/home", "/Users"];
const CLOSED_BELOW_HOME = [
  ".aws",
  ".azure",
  ".config/gcloud",
  ".config/gh",
  ".docker",
  ".gnupg",
  ".kube",
  ".local/share/keyrings",
  ".password-store",
  ".ssh",
];

/** Resolves a directory without opening anything below it. Error: `workspace.invalid` with a hint. */
export async function checkDirectory(path: string, check: DirectoryCheck): Promise<CheckedDirectory> {
  refuseRemote(path, check);
  const resolved = await resolveDirectory(path, check.purpose);
  await refuseSensitive(resolved, check);
  return { path: resolved, identity: await identify(resolved, check.purpose) };
}

/**
 * Checks the path at which commands are to see a directory of brig's own: a mount there may hide neither the system of the image
 * nor what brig itself mounts. Error: `usage.invalid`.
 */
export function requireWorkspacePath(path: string): void {
  const isPlain = isAbsolute(path) && normalize(path) === path && !/[\0\n]/.test(path);
  const isClosed =
    path === "/" || CLOSED_TREES.some((closed) => isAtOrBelow(path, closed) || isAtOrBelow(closed, path));
  const isOpen = OPEN_BELOW_CLOSED.some((open) => isAtOrBelow(path, open));
  if (isPlain && !path.endsWith("/") && (!isClosed || isOpen)) return;
  throw new BrigError(`a workspace cannot be at ${quote(path)} of a sandbox`, {
    code: "usage.invalid",
    hint: "choose a directory such as /workspace, or one below /home",
  });
}

/** Whether no sandbox may see this directory, as it is written or all of it. */
export async function isClosedDirectory(path: string, check: DirectoryCheck): Promise<boolean> {
  return await refuseSensitive(path, check).then(
    () => false,
    () => true,
  );
}

/** The mount points below a directory; empty on a machine without a mount table in /proc. */
export async function submountsBelow(
  path: string,
  { procDirectory = "/proc" }: HostDirectories,
): Promise<MountEntry[]> {
  const table = await readFile(`${procDirectory}/self/mountinfo`).catch(() => null);
  return table === null ? [] : parseMountinfo(table).filter((entry) => isBelow(entry.path, path));
}

/** A TCP endpoint on loopback may be this machine; the comparison of inodes after the start finds out. */
function isRemoteEndpoint(endpoint: string): boolean {
  if (/^(?:unix|npipe):/.test(endpoint)) return false;
  return !/^(?:tcp|https?):\/\/(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]+)?(?:\/|$)/.test(
    endpoint,
  );
}

function refuseRemote(path: string, { purpose, endpoint }: DirectoryCheck): void {
  if (!isRemoteEndpoint(endpoint)) return;
  throw refused(
    `the ${purpose} ${quote(path)} cannot be checked: the engine at ${endpoint} runs on another machine`,
    "use --workspace none, or an engine on this machine",
  );
}

async function resolveDirectory(path: string, purpose: string): Promise<string> {
  if (path.includes("\0")) throw refused(`the ${purpose}'s path contains a NUL byte`, "give another path");
  if (!isAbsolute(path))
    throw refused(`the ${purpose} ${quote(path)} is not an absolute path`, "give its full path");
  const bytes = await realpath(path, { encoding: "buffer" }).catch((cause: unknown) => {
    throw unreachable(path, purpose, cause);
  });
  const resolved = bytes.toString("utf8");
  if (!Buffer.from(resolved, "utf8").equals(bytes))
    throw refused(
      `the ${purpose} ${quote(path)} has a name that is not UTF-8, which the engine's API cannot carry`,
      "rename the directory",
    );
  if (resolved.includes("\n"))
    throw refused(
      `the ${purpose} ${quote(resolved)} has a line break in its name, so it could not be checked inside`,
      "rename the directory",
    );
  return resolved;
}

function unreachable(path: string, purpose: string, cause: unknown): BrigError {
  const code = errnoOf(cause) ?? "unknown";
  const reasons: Record<string, [string, string]> = {
    ENOENT: ["does not exist", "create it, or give another path"],
    ENOTDIR: ["leads through something that is not a directory", "give another path"],
    ELOOP: ["is a loop of symbolic links", "give another path"],
    EACCES: ["cannot be reached with your permissions", "check the permissions of the directories above it"],
    ENAMETOOLONG: ["is too long a path", "give a shorter one"],
  };
  const [reason, hint] = reasons[code] ?? [`cannot be resolved (${code})`, "give another path"];
  return refused(`the ${purpose} ${quote(path)} ${reason}`, hint, cause);
}

async function refuseSensitive(resolved: string, check: DirectoryCheck): Promise<void> {
  const hint = hintAgainst(resolved, check);
  const refuse = (place: string): BrigError =>
    new BrigError(
      place === resolved
        ? `${quote(resolved)} may not be the ${check.purpose}`
        : `${quote(resolved)} may not be the ${check.purpose}: it ${
            isBelow(place, resolved) ? "contains" : "lies inside"
          } ${place}`,
      { code: "workspace.invalid", hint },
    );
  const { places, trees } = await closedPlaces(check);
  const place = places.find((closed) => isAtOrBelow(closed, resolved));
  if (place !== undefined) throw refuse(place);
  if (HOMES.includes(dirname(resolved))) throw refuse(resolved);
  const tree = trees.find((closed) => isAtOrBelow(closed, resolved) || isAtOrBelow(resolved, closed));
  if (tree !== undefined && !OPEN_BELOW_CLOSED.some((open) => isBelow(resolved, open))) throw refuse(tree);
}

function hintAgainst(resolved: string, { purpose, host: { homeDirectory } }: DirectoryCheck): string {
  if (homeDirectory === null || resolvedOrSame(homeDirectory) !== resolved)
    return `use another directory as the ${purpose}, for example one below your home directory`;
  const instead = purpose === "workspace" ? "Go to a project, or use -C DIR" : "Choose a directory in it";
  return `${quote(resolved)} is your home directory: everything in it, keys too, could be read. ${instead}`;
}

/** Returns each path as written and as resolved, since any of them may be a symbolic link. */
async function closedPlaces({ endpoint, dockerRootDir, host }: DirectoryCheck) {
  const home = host.homeDirectory;
  const homes = home === null || home === "/" ? [] : [home];
  const socket = endpoint.startsWith("unix://") ? [endpoint.slice("unix://".length)] : [];
  const belowHome = homes.flatMap((directory) => CLOSED_BELOW_HOME.map((name) => `${directory}/${name}`));
  const trees = [
    ...CLOSED_TREES,
    ...belowHome,
    ...socket,
    ...(isAbsolute(dockerRootDir) ? [dockerRootDir] : []),
  ];
  const places = [...CLOSED_PLACES, ...homes, ...(await withLogin(host.configDirectories ?? []))];
  return { places: withResolved(places), trees: withResolved(trees) };
}

async function withLogin(directories: readonly string[]): Promise<string[]> {
  const logins = directories.map((directory) => lstat(`${directory}/auth.json`).catch(() => null));
  const found = await Promise.all(logins);
  return directories.filter((_, at) => found[at] !== null);
}

/** Synchronous, because forty short calls take a twentieth of the time that way. */
function withResolved(paths: string[]): string[] {
  return [...new Set([...paths, ...paths.map(resolvedOrSame)])];
}

function resolvedOrSame(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

async function identify(resolved: string, purpose: string): Promise<Identity> {
  try {
    await using handle = await open(
      resolved,
      constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
    );
    const { dev, ino } = await handle.stat({ bigint: true });
    return { dev: String(dev), ino: String(ino) };
  } catch (cause) {
    if (errnoOf(cause) === "ENOTDIR")
      throw refused(
        `the ${purpose} ${quote(resolved)} is not a directory`,
        `use ${quote(dirname(resolved))}`,
        cause,
      );
    throw unreachable(resolved, purpose, cause);
  }
}

function refused(message: string, hint: string, cause?: unknown): BrigError {
  return new BrigError(message, { code: "workspace.invalid", hint, cause });
}

/** Escapes control characters, which must not reach a terminal. */
function quote(path: string): string {
  return JSON.stringify(path);
}
