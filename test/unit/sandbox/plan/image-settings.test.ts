import { describe, expect, it } from "vitest";
import type { ImageSummary } from "../../../../src/sandbox/docker/engine-types.js";
import { applyImageSettings, commandEnvironment } from "../../../../src/sandbox/plan/image-settings.js";
import { planFor } from "./plan-fixture.js";

const plan = await planFor(null, { env: { LANG: "C" } });
const danger = await planFor(null, { mode: "danger-full-access" });

function image(says: Partial<ImageSummary>): ImageSummary {
  return {
    id: "sha256:1",
    tags: [],
    sizeBytes: 0,
    createdAt: new Date(0),
    lastTaggedAt: null,
    labels: {},
    arch: "amd64",
    env: [],
    volumes: [],
    user: "",
    workingDir: "",
    ...says,
  };
}

describe("the environment of an image", () => {
  it("is taken from the container whole", () => {
    const { overridden } = applyImageSettings(
      plan,
      image({ env: ["A=1", "HOME=/x", "B"], labels: { l: "1" } }),
    );
    expect(overridden).toEqual({ environment: ["A", "HOME", "B"], labels: ["l"] });
  });

  it("gives way to the caller's and beats what is so by default, but never says where HOME is", () => {
    const env = ["PATH=/opt/bin", "LANG=de_DE", "HOME=/etc", "A=1=2"];
    const found = commandEnvironment(applyImageSettings(plan, image({ env })));
    expect(found).toEqual({ PATH: "/opt/bin:/.brig/bin", LANG: "C", HOME: "/home/brig", A: "1=2" });
  });

  it.each(["LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "BASH_FUNC_git%%", "NODE_OPTIONS", "PERL5OPT"])(
    "reaches no command with %s",
    (name) => {
      const planned = applyImageSettings(
        plan,
        image({ env: [`${name}=x`, "LD_LIBRARY_PATH=/opt", "ENVIRONMENT=1"] }),
      );
      expect(planned.imageEnvironment).toEqual({ LD_LIBRARY_PATH: "/opt", ENVIRONMENT: "1" });
    },
  );

  it.each([
    ["a name that is empty", ["=x"]],
    ["a NUL", ["A\0B=x"]],
    ["more than commands can be given", [`A=${"x".repeat(70_000)}`]],
  ])("with %s is refused", (_, env) => {
    expect(() => applyImageSettings(plan, image({ env }))).toThrow(
      expect.objectContaining({ code: "policy.not-enforced", message: expect.stringContaining("brig/base") }),
    );
  });
});

describe("a volume of an image", () => {
  it.each([
    ...[
      ["/"],
      ["/tmp/x"],
      ["/var/run"],
      ["/var"],
      ["/usr"],
      ["/etc/x"],
      ["/proc/sys"],
      ["/dev/shm"],
      ["/.brig/x"],
    ],
    ...[
      ["/w/sub"],
      ["/data/../etc"],
      ["data"],
      ["/a,b"],
      ["/a:b"],
      ["/a\nb"],
      ["/data", "/data/x"],
      ["/home"],
    ],
    Array.from({ length: 17 }, (_, index) => `/v${index}`),
  ])("is refused where it cannot be a directory in memory: %s", (...volumes) => {
    const workspace = { path: "/w", kind: "workspace", access: "rw", identity: null } as const;
    expect(() => applyImageSettings({ ...plan, mounts: [workspace] }, image({ volumes }))).toThrow(
      expect.objectContaining({
        code: "policy.not-enforced",
        message: expect.stringContaining("brig/base"),
        hint: expect.stringContaining("VOLUME"),
      }),
    );
  });

  it("is refused by a policy without directories in memory", () => {
    expect(() => applyImageSettings({ ...plan, tmpfs: [] }, image({ volumes: ["/data"] }))).toThrow(
      expect.objectContaining({ code: "policy.not-enforced" }),
    );
  });

  it("is a directory in memory that nothing can be started from, out of what the policy's first one has", () => {
    const { tmpfs } = applyImageSettings(plan, image({ volumes: ["/data/", "/srv/db"] }));
    expect(tmpfs.slice(-2)).toMatchObject([
      { path: "/data", exec: false },
      { path: "/srv/db", exec: false },
    ]);
    const total = (all: typeof tmpfs, of: "sizeBytes" | "maxInodes") =>
      all.reduce((sum, one) => sum + one[of], 0);
    expect(total(tmpfs, "sizeBytes")).toBeLessThanOrEqual(total(plan.tmpfs, "sizeBytes"));
    expect(total(tmpfs, "maxInodes")).toBeLessThanOrEqual(total(plan.tmpfs, "maxInodes"));
    expect(tmpfs.every(({ sizeBytes }) => sizeBytes >= 65_536)).toBe(true);
  });

  it("may stand where the policy has a directory, or where everything can be written", () => {
    expect(() => applyImageSettings(plan, image({ volumes: ["/tmp/", "/run"] }))).not.toThrow();
    expect(() => applyImageSettings(danger, image({ volumes: ["/data"] }))).not.toThrow();
  });
});
