import { formatBytes } from "../../../lib/bytes.js";
import { matchesWildcards } from "../../../lib/wildcards.js";
import { isWithinNetwork, parseNetwork, type SandboxMode } from "../../../sandbox/index.js";
import { busy, Refusal } from "../http/refusal.js";
import type { ClientQuota } from "../http/served-client.js";
import type { Need } from "./machine-room.js";

const RETRY_SECONDS = 5;
const MEBIBYTE = 1024 ** 2;

/** Error: a refusal with 403 for what the client could not have if it had nothing else. */
export function refuseNeverAllowed({ limits }: Need, { maxSandboxes, cpus, memoryMb }: ClientQuota): void {
  if (maxSandboxes === 0) throw forbidden("this client may have no sandboxes");
  if (cpus !== undefined && limits.cpus > cpus)
    throw forbidden(
      `the sandbox may use ${limits.cpus} processors, and all of this client's together ${cpus}`,
      "ask for a smaller limit: cpus",
    );
  if (memoryMb !== undefined && limits.memoryMb > memoryMb)
    throw forbidden(
      `the sandbox may use ${size(limits.memoryMb)} of memory, and all of this client's together ${size(memoryMb)}`,
      "ask for a smaller limit: memoryMb",
    );
}

/** Why a client cannot have one more at the moment; null if it can. */
export function shortageOfQuota(
  { limits }: Need,
  used: { places: number; cpus: number; memoryMb: number },
  { maxSandboxes, cpus, memoryMb }: ClientQuota,
): Refusal | null {
  if (maxSandboxes !== undefined && used.places >= maxSandboxes)
    return usedUp(`this client has ${used.places} sandboxes, of ${maxSandboxes} that it may have`);
  if (cpus !== undefined && used.cpus + limits.cpus > cpus)
    return usedUp(
      `the sandboxes of this client may use ${used.cpus} processors, of ${cpus}, and this one ${limits.cpus}`,
    );
  if (memoryMb !== undefined && used.memoryMb + limits.memoryMb > memoryMb)
    return usedUp(
      `the sandboxes of this client may use ${size(used.memoryMb)} of memory, of ${size(memoryMb)}, and this one ${size(limits.memoryMb)}`,
    );
  return null;
}

/** What of a sandbox a client can only have if it is allowed. What is not said is not asked for. */
export interface AskedFor {
  image?: string | undefined;
  mode?: SandboxMode | undefined;
  network?: string | undefined;
  /** While the set-up runs. */
  setupNetwork?: string | undefined;
}

/** Error: a refusal with 403. */
export function refuseForbidden(
  { image, mode, network, setupNetwork }: AskedFor,
  { images, modes, networks }: ClientQuota,
): void {
  if (image !== undefined && images?.some((pattern) => matchesWildcards(image, pattern)) === false)
    throw forbidden(
      `this client may not use the image ${JSON.stringify(image)}`,
      `use one of ${images.join(", ")}`,
    );
  if (mode !== undefined && modes?.includes(mode) === false)
    throw forbidden(`this client may not use the mode ${mode}`, `use one of ${modes.join(", ")}`);
  for (const asked of [network, setupNetwork])
    if (asked !== undefined && networks !== undefined && !isAllowedNetwork(asked, networks))
      throw forbidden(
        `this client may not use the network ${JSON.stringify(asked)}`,
        `ask for no more than one of ${networks.join(", ")}`,
      );
}

/** What makes no network is refused where it is used. */
function isAllowedNetwork(text: string, allowed: readonly string[]): boolean {
  const wanted = parseNetwork(text);
  if (wanted.kind === "refused") return true;
  if (wanted.network.kind === "none") return true;
  return allowed
    .map(parseNetwork)
    .some((one) => one.kind === "parsed" && isWithinNetwork(wanted.network, one.network));
}

function forbidden(
  message: string,
  hint = "the operator of the service can allow this client more",
): Refusal {
  return new Refusal(message, { status: 403, code: "serve.quota", hint });
}

function usedUp(message: string): Refusal {
  return busy(message, { status: 429, retrySeconds: RETRY_SECONDS });
}

function size(memoryMb: number): string {
  return formatBytes(memoryMb * MEBIBYTE);
}
