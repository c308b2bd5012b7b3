import { isIP } from "node:net";
import { type FaultPlace, shown, type TaskNotes } from "./notes.js";
import type { TaskNetwork } from "./task.js";

export const networkModes = ["public", "no-network", "allowlist"] as const;

export interface NetworkSettings {
  network_mode?: TaskNetwork["mode"] | undefined;
  allowed_hosts?: readonly string[] | undefined;
  /** The older way to say "no-network". */
  allow_internet?: boolean | undefined;
}

/** Null where nothing is said. `field` of the place is the table. */
export function networkOf(
  settings: NetworkSettings,
  notes: TaskNotes,
  place: FaultPlace,
): TaskNetwork | null {
  const { network_mode: mode, allowed_hosts: hosts = [], allow_internet: allowsInternet } = settings;
  const at = (key: string) => ({ ...place, field: `${place.field}.${key}` });
  if (mode !== undefined && allowsInternet !== undefined && allowsInternet !== (mode === "public"))
    notes.refuse(
      `is ${allowsInternet}, which contradicts network_mode = ${shown(mode)}`,
      at("allow_internet"),
    );
  if (
    hosts.length > 0 &&
    (mode === "public" || mode === "no-network" || (mode === undefined && allowsInternet))
  )
    notes.refuse('is only allowed with network_mode = "allowlist"', at("allowed_hosts"));
  const chosen = mode ?? (hosts.length > 0 ? "allowlist" : undefined);
  if (chosen === "allowlist")
    return { mode: "allowlist", allowedHosts: allowed(hosts, notes, at("allowed_hosts")) };
  if (chosen !== undefined) return { mode: chosen, allowedHosts: [] };
  if (allowsInternet === undefined) return null;
  return { mode: allowsInternet ? "public" : "no-network", allowedHosts: [] };
}

function allowed(hosts: readonly string[], notes: TaskNotes, place: FaultPlace): string[] {
  for (const host of hosts.filter((one) => normalHost(one) === null))
    notes.refuse(`${shown(host)} is no host`, {
      ...place,
      hint: "a host is a name, *.suffix, an IP address or a range such as 10.0.0.0/8, without scheme, port or path",
    });
  return [...new Set(hosts.map(normalHost).filter((host) => host !== null))];
}

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Lower case, without a trailing dot; `.example.com` becomes `*.example.com`. Null for what is no host. */
function normalHost(text: string): string | null {
  const host = text.toLowerCase().replace(/\.$/, "");
  if (isIP(host) !== 0 || isRange(host)) return host;
  const name = host.replace(/^\*?\./, "");
  if (name === "" || name.length > 253 || !name.split(".").every((part) => label.test(part))) return null;
  // All digits and dots, but no address.
  if (/^[\d.]+$/.test(name)) return null;
  return name === host ? name : `*.${name}`;
}

function isRange(text: string): boolean {
  const [address = "", bits = "", ...rest] = text.split("/");
  const family = isIP(address);
  return (
    family !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
  );
}
