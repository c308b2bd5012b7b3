import { describe, expect, it } from "vitest";
import { allAttempts } from "../../../../src/sandbox/attack/attempts.js";
import { judge } from "../../../../src/sandbox/attack/judge.js";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import type { Policy } from "../../../../src/sandbox/policy/policy.js";

const { policy } = await loadPolicy("workspace-write");

interface Situation {
  outcome?: string;
  control?: string | null;
  policy?: Partial<Policy>;
  kernel?: "shared" | "gvisor";
}

/** The judgement of one attempt, by its name. */
function judged(name: string, { outcome, control = "done", kernel = "shared", ...rest }: Situation) {
  const attempt = allAttempts.find((one) => one.attempt === name);
  if (attempt === undefined) throw new Error(`there is no attempt ${name}`);
  const controls = control === null ? null : { root: { [name]: control }, user: { [name]: control } };
  return judge(attempt, {
    policy: { ...policy, ...rest.policy },
    kernel,
    outcomes: outcome === undefined ? {} : { [name]: outcome },
    control: controls,
  });
}

describe("an attempt", () => {
  it("held if it was refused and its control succeeded", () => {
    expect(judged("engine-socket", { outcome: "ENOENT" })).toEqual({
      id: "A1",
      attempt: "engine-socket",
      title: "the engine's socket is not there",
      verdict: "held",
      outcome: "ENOENT",
      expected: ["ENOENT"],
      control: "done",
      reason: null,
      advice: null,
    });
  });

  it("held without a control, and where nobody makes one", () => {
    expect(judged("engine-socket", { outcome: "ENOENT", control: null })).toMatchObject({
      verdict: "held",
      control: null,
    });
    expect(judged("metadata-service", { outcome: "ENETUNREACH", control: "ENETUNREACH" })).toMatchObject({
      verdict: "held",
      control: null,
    });
  });

  it("held if it was refused with another error than the usual one", () => {
    expect(judged("system-write", { outcome: "ENOENT EROFS" }).verdict).toBe("held");
  });

  it.each(["done", "found /dev/sda"])(
    "did not hold if it came to %s, and what that means is said",
    (outcome) => {
      expect(judged("device-nodes", { outcome, control: "found /dev/kmsg" })).toMatchObject({
        verdict: "failed",
        reason: "a command may reach the machine's hardware and disks",
      });
    },
  );

  it.each(["ENOENT", "nothing", undefined])("is not judged if its control came to %s", (control) => {
    const found = judged("engine-socket", { outcome: "ENOENT", control: control ?? "no answer" });
    expect(found.verdict).toBe("unjudged");
    expect(found.reason).toContain("proves nothing");
  });

  it("is not judged if it did not answer, or was ended", () => {
    expect(judged("mounts", {})).toMatchObject({ verdict: "unjudged", outcome: "no answer" });
    expect(judged("mounts", { outcome: "ended by signal 9" }).verdict).toBe("unjudged");
  });

  it("says why it is not judged", () => {
    expect(judged("mounts", {})).toMatchObject({ reason: "the attempt did not answer", advice: null });
    expect(judged("mounts", { outcome: "ended by signal 9" })).toMatchObject({
      reason: "the attempt ended by signal 9",
      advice: null,
    });
    expect(judged("mounts", { outcome: "EPERM and more" }).verdict).toBe("unjudged");
    expect(judged("mounts", { outcome: "EPERM", control: "EPERM" })).toMatchObject({
      reason: "it is refused without any protection as well (EPERM), so the refusal proves nothing",
      advice: expect.stringContaining("--no-control"),
    });
  });

  it("is not judged if its control did not answer at all", () => {
    const attempt = allAttempts.find((one) => one.attempt === "mounts");
    if (attempt === undefined) throw new Error("there is no such attempt");
    const control = { root: {}, user: { mounts: "done" } };
    expect(
      judge(attempt, { policy, kernel: "shared", outcomes: { mounts: "EPERM" }, control }),
    ).toMatchObject({ verdict: "unjudged", control: "no answer" });
  });

  it("has its control by the user that it names, and by root otherwise", () => {
    const of = (name: string, control: { root: string; user: string }) => {
      const attempt = allAttempts.find((one) => one.attempt === name);
      if (attempt === undefined) throw new Error("there is no such attempt");
      const controls = { root: { [name]: control.root }, user: { [name]: control.user } };
      return judge(attempt, { policy, kernel: "shared", outcomes: {}, control: controls }).control;
    };
    expect(of("setuid-program", { root: "EPERM", user: "done" })).toBe("done");
    expect(of("mounts", { root: "done", user: "EPERM" })).toBe("done");
  });

  it("takes a special answer of the control where success would do harm", () => {
    expect(judged("first-process", { outcome: "EACCES", control: "ETXTBSY" }).verdict).toBe("held");
    expect(judged("first-process", { outcome: "EACCES", control: "done" }).verdict).toBe("unjudged");
  });

  it("is allowed if it succeeded and the policy says so, with what to write instead", () => {
    const open = { policy: { network: { kind: "full" as const } } };
    expect(judged("host-address", { outcome: "done", ...open })).toMatchObject({
      verdict: "allowed",
      reason: 'the policy says network = "full"',
      advice: expect.stringContaining('network = "none"'),
    });
    // What the policy does not permit did not hold, whatever else it permits.
    expect(judged("host-loopback", { outcome: "done", ...open }).verdict).toBe("failed");
    expect(judged("host-address", { outcome: "done" }).verdict).toBe("failed");
  });

  it("held if it was refused although the policy allows it", () => {
    expect(judged("workspace-change", { outcome: "EROFS" }).verdict).toBe("held");
  });

  it("could not be tried, for the reason that the program gives", () => {
    expect(judged("setuid-program", { outcome: "untried: the commands are root" })).toMatchObject({
      verdict: "untried",
      reason: "the commands are root",
    });
  });

  it("is no failure where it reaches the kernel of gVisor and not the host's", () => {
    expect(judged("mounts", { outcome: "done", kernel: "gvisor" }).verdict).toBe("allowed");
    expect(judged("engine-socket", { outcome: "done", kernel: "gvisor" }).verdict).toBe("failed");
  });

  it.each([
    ["processes-without-limit", "untried: there is nothing to try it on", "untried"],
    ["device-nodes", "found /dev/net/tun /dev/fuse", "allowed"],
    ["device-nodes", "found /dev/fuse", "allowed"],
    ["writable-places", "found /dev", "allowed"],
    ["files-without-limit", "found /tmp /run", "allowed"],
    ["memory-without-size", "found 14004 MiB", "allowed"],
    ["container-log", "done", "allowed"],
    ["control-groups", "nothing", "held"],
    ["metadata-service", "EHOSTUNREACH", "held"],
  ])("%s that came to %j is judged by what gVisor is under gVisor only", (name, outcome, verdict) => {
    const judgement = judged(name, { outcome, kernel: "gvisor" });
    expect(judgement.verdict).toBe(verdict);
    if (verdict !== "held") expect(judgement.reason).toContain("gVisor");
    if (verdict === "allowed") expect(judged(name, { outcome }).verdict).toBe("failed");
    if (outcome === "nothing") expect(judged(name, { outcome }).verdict).toBe("unjudged");
  });

  it.each([
    ["device-nodes", "found /dev/fuse /dev/sda"],
    ["device-nodes", "found /dev/fuse-of-the-host"],
    ["writable-places", "found /dev /etc"],
    ["memory-without-size", "found a directory without a size"],
  ])("%s that came to %j did not hold under gVisor either", (name, outcome) => {
    expect(judged(name, { outcome, kernel: "gvisor" }).verdict).toBe("failed");
  });
});
