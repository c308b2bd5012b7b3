import { isAtOrBelow } from "../plan/paths.js";
import type { PlannedMount, SandboxPlan } from "../plan/plan.js";

/** The files of the host that a sandbox sees, and the paths at which it sees them. */
export class HostView {
  readonly #mounts: readonly HostMount[];
  /** Every path that something is mounted at. */
  readonly #paths: readonly string[];

  constructor({ mounts, volumes, tmpfs }: Pick<SandboxPlan, "mounts" | "volumes" | "tmpfs">) {
    this.#mounts = mounts.flatMap(hostMount);
    this.#paths = [...mounts, ...volumes, ...tmpfs].map(({ path }) => path);
  }

  /** The host's directories that are mounted, without those inside of others. */
  get trees(): string[] {
    const sources = [...new Set(this.#mounts.map(({ source }) => source))];
    return sources.filter((one) => !sources.some((outer) => outer !== one && isAtOrBelow(one, outer)));
  }

  /** The paths at which the sandbox sees this file of the host: none if another mount hides it. */
  placesOf(file: string): { path: string; access: "ro" | "rw" }[] {
    const places = this.#mounts.flatMap(({ source, path, access }) => {
      if (!isAtOrBelow(file, source)) return [];
      const inside = `${path}${file.slice(source.length)}`;
      return this.#innermost(inside) === path ? [{ path: inside, access }] : [];
    });
    return [...new Map(places.map((place) => [place.path, place])).values()];
  }

  #innermost(inside: string): string | undefined {
    const above = this.#paths.filter((path) => isAtOrBelow(inside, path));
    return above.toSorted((a, b) => b.length - a.length)[0];
  }
}

interface HostMount {
  source: string;
  path: string;
  access: "ro" | "rw";
}

function hostMount({ path, access, source = { kind: "host", path } }: PlannedMount): HostMount[] {
  return source.kind === "host" ? [{ source: source.path, path, access }] : [];
}
