import { posix } from "node:path";
import { BrigError } from "../../errors.js";
import type { ImageSummary } from "../docker/engine-types.js";
import { PROXY_ADDRESS } from "../egress/addresses.js";
import { TOOLBOX_PATH } from "./create-body.js";
import { isAtOrBelow, isBelow } from "./paths.js";
import type { PlannedTmpfs, SandboxPlan } from "./plan.js";
import { LEAST_INODES, PAGE_BYTES } from "./plan-sandbox.js";

/** An image's environment is sent with every command, so it must not be huge. */
const ENVIRONMENT_MAX_BYTES = 64 * 1024;

/** Variables that make a loader, shell or interpreter run other code before the requested program. */
const CODE_LOADING_VARIABLES = [
  /^LD_(?!LIBRARY_PATH$)/,
  /^(?:BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|PS4)$/,
  /^BASH_FUNC_/,
  /^GLIBC_TUNABLES$|^GCONV_PATH$/,
  /^(?:NODE_OPTIONS|PYTHONSTARTUP|PYTHONINSPECT|PERL5OPT|PERL5DB|RUBYOPT|JDK_JAVA_OPTIONS|JAVA_TOOL_OPTIONS)$/,
];

/**
 * Adds the image's own settings to the plan. The image is not trusted: the container overrides its labels and
 * environment, and commands receive only those of its variables that load no code. Error:
 * `policy.not-enforced` for a setting that cannot be overridden.
 */
export function applyImageSettings(plan: SandboxPlan, { env, labels, volumes }: ImageSummary): SandboxPlan {
  const variables = parseEnvironment(plan.image, env);
  return {
    ...plan,
    tmpfs: withVolumesInMemory(plan, volumes),
    overridden: { environment: Object.keys(variables), labels: Object.keys(labels) },
    imageEnvironment: forCommands(variables),
  };
}

/**
 * The environment of commands. The caller's variables override the image's, and these override the defaults.
 * PATH ends with brig's own programs, so that every image has `apply_patch`; a PATH from the caller is used
 * unchanged. A placeholder overrides everything: what has the name of a secret may be the secret.
 */
export function commandEnvironment(
  plan: SandboxPlan,
  {
    trust = {},
    placeholders = {},
  }: { trust?: Readonly<Record<string, string>>; placeholders?: Readonly<Record<string, string>> } = {},
): Record<string, string> {
  const { containerEnvironment, imageEnvironment, callerEnvironment } = plan;
  const found: Record<string, string> = { ...containerEnvironment, ...imageEnvironment, HOME: plan.home };
  if (found.PATH !== undefined) found.PATH = `${found.PATH}:${TOOLBOX_PATH}/bin`;
  return {
    ...found,
    ...(plan.egress !== null && proxyEnvironment),
    ...trust,
    ...callerEnvironment,
    ...javaOptions(trust, callerEnvironment),
    ...placeholders,
  };
}

/** Both count: of two options of the same name a JVM takes the last, which is the caller's. */
function javaOptions(
  { JAVA_TOOL_OPTIONS: own }: Readonly<Record<string, string>>,
  { JAVA_TOOL_OPTIONS: callers }: Readonly<Record<string, string>>,
): Record<string, string> {
  return own && callers ? { JAVA_TOOL_OPTIONS: `${own} ${callers}` } : {};
}

/** More directories in memory than these are not made for one image. */
const MOST_VOLUMES = 16;

/** Places that belong to the kernel, to the engine or to brig, and those without which no program starts. */
const RESERVED = [
  "/proc",
  "/sys",
  "/dev",
  "/etc",
  "/bin",
  "/sbin",
  "/lib",
  "/lib64",
  "/usr",
  "/var/run",
  TOOLBOX_PATH,
];

/**
 * The engine would mount a writable volume without any limit at each VOLUME. A directory in memory takes its place, which is empty,
 * whatever the image has there. Together they have half of the size of the policy's first one, which gets the other half: so they
 * take no more memory than the policy allows.
 */
function withVolumesInMemory(plan: SandboxPlan, volumes: readonly string[]): PlannedTmpfs[] {
  // Where the policy makes the whole file system writable, the engine's volumes give nothing more.
  if (plan.rootfs === "rw") return plan.tmpfs;
  const planned = [...plan.mounts, ...plan.tmpfs, ...plan.volumes].map(({ path }) => path);
  const strangers = [...new Set(volumes.map(withoutSlash))].filter((path) => !planned.includes(path));
  if (strangers.length === 0) return plan.tmpfs;
  const [like, ...others] = plan.tmpfs;
  if (like === undefined) throw refusedVolumes(plan, strangers, "has no directory in memory");
  if (strangers.length > MOST_VOLUMES)
    throw refusedVolumes(plan, strangers, `has room for ${MOST_VOLUMES} of them`);
  const inWay = [...planned, ...plan.parents, ...RESERVED];
  for (const path of strangers)
    if (!isOrdinary(path) || inWay.some((other) => isAtOrBelow(path, other) || isAtOrBelow(other, path)))
      throw refusedVolumes(plan, [path], "uses that place itself");
  if (strangers.some((path) => strangers.some((other) => isBelow(path, other))))
    throw refusedVolumes(plan, strangers, "puts none into another");
  const half = inParts(like, 2);
  const part = inParts(half, strangers.length);
  return [half, ...others, ...strangers.map((path) => ({ ...part, path, exec: false }))];
}

function inParts(tmpfs: PlannedTmpfs, count: number): PlannedTmpfs {
  const sizeBytes = Math.floor(tmpfs.sizeBytes / count / PAGE_BYTES) * PAGE_BYTES;
  const maxInodes = Math.floor(tmpfs.maxInodes / count);
  return {
    ...tmpfs,
    sizeBytes: Math.max(PAGE_BYTES, sizeBytes),
    maxInodes: Math.max(LEAST_INODES, maxInodes),
  };
}

function withoutSlash(path: string): string {
  return path.replace(/(?<=.)\/+$/, "");
}

function isOrdinary(path: string): boolean {
  return (
    path.startsWith("/") && path !== "/" && posix.normalize(path) === path && !/[\p{Cc},:\\]/u.test(path)
  );
}

function refusedVolumes({ image, policyName }: SandboxPlan, paths: string[], words: string): BrigError {
  const list = paths
    .slice(0, MOST_VOLUMES)
    .map((path) => JSON.stringify(path))
    .join(", ");
  return new BrigError(
    `the image ${JSON.stringify(image)} has a VOLUME at ${list}: it would be a directory in memory, and the policy ${policyName} ${words}`,
    {
      code: "policy.not-enforced",
      hint: "use an image without this VOLUME, or a policy of your own with a [[tmpfs]] at that path; nothing was started",
    },
  );
}

function parseEnvironment(image: string, env: readonly string[]): Record<string, string> {
  const entries = env.map((entry): [string, string] => {
    const at = entry.indexOf("=");
    return at === -1 ? [entry, ""] : [entry.slice(0, at), entry.slice(at + 1)];
  });
  const bytes = env.reduce((sum, entry) => sum + Buffer.byteLength(entry), 0);
  const reason = entries.some(([name]) => name === "" || /[\0\n]/.test(name))
    ? "a variable without a valid name"
    : bytes > ENVIRONMENT_MAX_BYTES
      ? `${bytes} bytes of variables, more than ${ENVIRONMENT_MAX_BYTES}`
      : null;
  if (reason === null) return Object.fromEntries(entries);
  throw new BrigError(`the environment of the image ${JSON.stringify(image)} has ${reason}`, {
    code: "policy.not-enforced",
    hint: "use another image; nothing was started",
  });
}

function forCommands(variables: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !loadsCode(name)));
}

/** Whether a variable of this name makes programs run other code first. */
export function loadsCode(name: string): boolean {
  return CODE_LOADING_VARIABLES.some((pattern) => pattern.test(name));
}

const PROXY_URL = `http://${PROXY_ADDRESS.address}:${PROXY_ADDRESS.port}`;
/** Servers of the sandbox itself; and the proxy, to which a library of Node connects that knows proxies itself. */
const DIRECT = `localhost,127.0.0.1,::1,${PROXY_ADDRESS.address}`;

/**
 * Makes programs use the proxy. Some only read the names in lower case, others only those in capitals. `ALL_PROXY`
 * is not SOCKS, although the proxy speaks it: Python's clients then fail without a package of their own. Node reads
 * them only if it is told to.
 */
const proxyEnvironment: Readonly<Record<string, string>> = {
  ...{ http_proxy: PROXY_URL, https_proxy: PROXY_URL, all_proxy: PROXY_URL, no_proxy: DIRECT },
  ...{ HTTP_PROXY: PROXY_URL, HTTPS_PROXY: PROXY_URL, ALL_PROXY: PROXY_URL, NO_PROXY: DIRECT },
  NODE_USE_ENV_PROXY: "1",
};
