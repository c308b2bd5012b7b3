import type { EngineInfo, EngineRuntime } from "../engine-types.js";

/**
 * The runtime of a container that asks for `asked`, or for the default (null). If the engine does not list
 * it, only its name is known.
 */
export function runtimeOf(
  { runtimes, defaultRuntime }: Pick<EngineInfo, "runtimes" | "defaultRuntime">,
  asked: string | null,
): EngineRuntime {
  const name = asked ?? defaultRuntime;
  return runtimes.find((runtime) => runtime.name === name) ?? { name, program: null, args: null };
}

/**
 * Whether a runtime looks like gVisor: by its program, or by its name if the program is not known. Good
 * enough to choose how a container is started, but not to skip a check: only the kernel's own answer can
 * prove gVisor.
 */
export function looksLikeGvisor(runtime: EngineRuntime): boolean {
  return (
    GVISOR_NAME.test(fileOf(runtime)) || (!sharesEngineKernel(runtime) && GVISOR_NAME.test(runtime.name))
  );
}

/** Whether its containers share the engine's kernel, as runc's do. */
export function sharesEngineKernel(runtime: EngineRuntime): boolean {
  return ORDINARY_RUNTIMES.test(fileOf(runtime));
}

const GVISOR_NAME = /(?:^|[^a-z])(?:runsc|gvisor)(?![a-z])/i;
const ORDINARY_RUNTIMES = /^(?:runc|crun|youki|docker-runc|io\.containerd\.runc\.v[0-9])$/;

function fileOf({ program, name }: EngineRuntime): string {
  return (program ?? name).split("/").at(-1) ?? "";
}

/** Whether gVisor applies a container's seccomp filter; by default it does not. */
export function appliesSeccomp(runtime: EngineRuntime): boolean {
  return hasFlag(runtime, "oci-seccomp");
}

/** Whether gVisor ignores cgroups, so that no limit is enforced. Null if the engine does not say. */
export function ignoresCgroups(runtime: EngineRuntime): boolean | null {
  return runtime.args === null ? null : hasFlag(runtime, "ignore-cgroups");
}

/** The last one counts, as in gVisor's own parser. */
function hasFlag({ args }: EngineRuntime, flag: string): boolean {
  const given = args?.findLast((arg) => new RegExp(`^--?${flag}(?:=|$)`).test(arg));
  return given !== undefined && !/=(?:0|f|false)$/i.test(given);
}
