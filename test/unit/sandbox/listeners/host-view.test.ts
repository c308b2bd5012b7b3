import { describe, expect, it } from "vitest";
import { HostView } from "../../../../src/sandbox/listeners/cover-listeners.js";
import type { PlannedMount } from "../../../../src/sandbox/plan/plan.js";

const mount = (path: string, more: Partial<PlannedMount> = {}): PlannedMount => ({
  ...{ kind: "workspace", access: "rw", identity: null, path },
  ...more,
});
const view = (...mounts: PlannedMount[]) => new HostView({ mounts, volumes: [], tmpfs: [] });
const volume = { source: { kind: "volume", volume: "v" } } as const;

describe("what a sandbox sees of the host", () => {
  it("are its directories, each once, and the files in them at the same paths", () => {
    const seen = view(mount("/w"), mount("/w/.git", { access: "ro" }), mount("/other"));
    expect(seen.trees).toEqual(["/w", "/other"]);
    expect(seen.placesOf("/w/a/s")).toEqual([{ path: "/w/a/s", access: "rw" }]);
    expect(seen.placesOf("/w/.git/s")).toEqual([{ path: "/w/.git/s", access: "ro" }]);
    expect(seen.placesOf("/elsewhere/s")).toEqual([]);
    expect(seen.placesOf("/work/s")).toEqual([]);
  });

  it("is nothing of a copy-on-write workspace but what is mounted over it", () => {
    const seen = view(mount("/w", volume), mount("/w/.git", { access: "ro" }));
    expect(seen.trees).toEqual(["/w/.git"]);
    expect(seen.placesOf("/w/s")).toEqual([]);
    expect(seen.placesOf("/w/.git/s")).toHaveLength(1);
  });

  it("is not what another mount hides", () => {
    const seen = view(mount("/w"), mount("/w/.git", volume));
    expect(seen.placesOf("/w/.git/s")).toEqual([]);
  });

  it("has another path where brig mounts it elsewhere", () => {
    const source = { kind: "host", path: "/home/alice/.agent" } as const;
    const seen = view(mount("/w"), mount("/brig-home/.agent", { access: "ro", source }));
    expect(seen.trees).toEqual(["/w", "/home/alice/.agent"]);
    expect(seen.placesOf("/home/alice/.agent/s")).toEqual([{ path: "/brig-home/.agent/s", access: "ro" }]);
  });
});
