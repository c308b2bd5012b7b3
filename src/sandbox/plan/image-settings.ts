import { BrigError } from "../../errors.js";
import type { ImageSummary } from "../docker/engine-types.js";
import { PROXY_ADDRESS } from "../egress/addresses.js";
import { TOOLBOX_PATH } from "./create-body.js";
import type { SandboxPlan } from "./plan.js";

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
  refuseVolumes(plan, volumes);
  const variables = parseEnvironment(plan.image, env);
  return {
    ...plan,
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

/** The engine would mount a writable volume at each VOLUME, which the policy does not allow. */
function refuseVolumes({ image, policyName, rootfs, mounts, tmpfs }: SandboxPlan, volumes: string[]): void {
  if (rootfs === "rw") return;
  const planned = new Set([...mounts, ...tmpfs].map(({ path }) => path));
  const strangers = volumes.filter((path) => !planned.has(path));
  if (strangers.length === 0) return;
  const list = strangers.map((path) => JSON.stringify(path)).join(", ");
  throw new BrigError(
    `the image ${JSON.stringify(image)} has a VOLUME at ${list}: the engine would mount a writable directory there, ` +
      `which the policy ${policyName} does not allow`,
    {
      code: "policy.not-enforced",
      hint: "use an image without VOLUME, or a policy of your own with a [[tmpfs]] at that path; nothing was started",
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
  return Object.fromEntries(
    Object.entries(variables).filter(
      ([name]) => !CODE_LOADING_VARIABLES.some((pattern) => pattern.test(name)),
    ),
  );
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
