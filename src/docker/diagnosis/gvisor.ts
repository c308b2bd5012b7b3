import type { EngineInfo, EngineRuntime } from "../engine-types.js";

/** The runtime a container gets that asks for this one, or for none. Of one the engine does not list only the name is known. */
export function runtimeOf(
  { runtimes, defaultRuntime }: Pick<EngineInfo, "runtimes" | "defaultRuntime">,
  asked: string | null,
): EngineRuntime {
  const name = asked ?? defaultRuntime;
  return runtimes.find((runtime) => runtime.name === name) ?? { name, program: null, args: null };
}

/**
 * Whether a runtime looks like gVisor: by its program, and by its name where the program does not tell. Good enough to
 * choose how a container is started, never to excuse one from a promise: that takes the kernel's own answer.
 */
export function looksLikeGvisor(runtime: EngineRuntime): boolean {
  return SAYS_GVISOR.test(fileOf(runtime)) || (!isCommon(runtime) && SAYS_GVISOR.test(runtime.name));
}

/** Whether it is a runtime of ordinary containers, which share the engine's kernel. */
export function isCommon(runtime: EngineRuntime): boolean {
  return COMMON.test(fileOf(runtime));
}

const SAYS_GVISOR = /(?:^|[^a-z])(?:runsc|gvisor)(?![a-z])/i;
const COMMON = /^(?:runc|crun|youki|docker-runc|io\.containerd\.runc\.v[0-9])$/;

function fileOf({ program, name }: EngineRuntime): string {
  return (program ?? name).split("/").at(-1) ?? "";
}

/** Whether gVisor loads the system call filter that comes with a container; by default it does not. */
export function loadsFilters(runtime: EngineRuntime): boolean {
  return hasFlag(runtime, "oci-seccomp");
}

/** Whether gVisor runs outside of the container's control groups, so that no limit holds. Null where the engine does not say. */
export function ignoresLimits(runtime: EngineRuntime): boolean | null {
  return runtime.args === null ? null : hasFlag(runtime, "ignore-cgroups");
}

/** The last one counts, as in the program itself. */
function hasFlag({ args }: EngineRuntime, flag: string): boolean {
  const given = args?.findLast((arg) => new RegExp(`^--?${flag}(?:=|$)`).test(arg));
  return given !== undefined && !/=(?:0|f|false)$/i.test(given);
}
