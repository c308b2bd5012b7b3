import type { ImageSummary } from "../../docker/engine-types.js";
import { BrigError } from "../../errors.js";
import { TOOLBOX_PATH } from "./create-body.js";
import type { SandboxPlan } from "./plan.js";

/** As much of an image's environment as is sent with every command. */
const ENVIRONMENT_MAX_BYTES = 64 * 1024;

/** Variables that make a loader, a shell or an interpreter run something before the program that was asked for. */
const RUNS_BY_ITSELF = [
  /^LD_(?!LIBRARY_PATH$)/,
  /^(?:BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|PS4)$/,
  /^BASH_FUNC_/,
  /^GLIBC_TUNABLES$|^GCONV_PATH$/,
  /^(?:NODE_OPTIONS|PYTHONSTARTUP|PYTHONINSPECT|PERL5OPT|PERL5DB|RUBYOPT|JDK_JAVA_OPTIONS|JAVA_TOOL_OPTIONS)$/,
];

/**
 * The plan with what an image says of itself dealt with, since whoever made the image need not be trusted: its labels
 * and its environment do not reach the container, and commands get of the environment what does not run by itself.
 * Errors: `policy.not-enforced` for what cannot be overridden.
 */
export function withImage(plan: SandboxPlan, { env, labels, volumes }: ImageSummary): SandboxPlan {
  refuseVolumes(plan, volumes);
  const variables = parseEnvironment(plan.image, env);
  return {
    ...plan,
    overridden: { environment: Object.keys(variables), labels: Object.keys(labels) },
    imageEnvironment: forCommands(variables),
  };
}

/**
 * What commands find in their environment; the caller's word beats the image's, and that beats what is so by default. Behind everything
 * that PATH has come brig's own programs, so that any image has `apply_patch`; a PATH of the caller's is left as it is.
 */
export function commandEnvironment(plan: SandboxPlan): Record<string, string> {
  const { containerEnvironment, imageEnvironment, callerEnvironment } = plan;
  const found: Record<string, string> = { ...containerEnvironment, ...imageEnvironment, HOME: plan.home };
  if (found.PATH !== undefined) found.PATH = `${found.PATH}:${TOOLBOX_PATH}/bin`;
  return { ...found, ...callerEnvironment };
}

/** The engine would mount a writable directory of its own at each, which no policy speaks of. */
function refuseVolumes({ image, policyName, rootfs, mounts, tmpfs }: SandboxPlan, volumes: string[]): void {
  if (rootfs === "rw") return;
  const planned = new Set([...mounts, ...tmpfs].map(({ path }) => path));
  const strangers = volumes.filter((path) => !planned.has(path));
  if (strangers.length === 0) return;
  const list = strangers.map((path) => JSON.stringify(path)).join(", ");
  throw new BrigError(
    `the image ${JSON.stringify(image)} has a VOLUME at ${list}: the engine would make a writable directory there, ` +
      `which the policy ${policyName} does not have`,
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
    ? "a variable without a proper name"
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
    Object.entries(variables).filter(([name]) => !RUNS_BY_ITSELF.some((pattern) => pattern.test(name))),
  );
}
