import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { packageRoot } from "../../../../../src/package-root.js";
import { type Attempt, controlSucceeded, isRefused } from "../../../../../src/sandbox/attack/attempt.js";
import { allAttempts, attemptGroups } from "../../../../../src/sandbox/attack/attempts.js";

/**
 * For each attempt: its assertion, every answer that is a refusal, who makes the control and what it answers, the settings that
 * allow the attempt, and whether it concerns the kernel alone. Another line here is another promise.
 */
const promises = {
  "engine-socket": "A1, ENOENT",
  "device-nodes": "A2, nothing",
  "host-processes": "A8, nothing",
  "host-name": "A9, nothing",
  "setuid-program": "A10, nothing, control by user, unless setuid",
  "host-file": "A17, ENOENT",
  "environment-of-processes": "A20, nothing",
  "login-files": "A23, nothing",
  "first-process-memory": "A24, EACCES",
  "host-abstract-socket": "A25, ECONNREFUSED",
  "host-sockets": "A25, nothing",
  "first-process": "A26, EACCES EROFS, control ETXTBSY",
  "container-log": "F10, EACCES",
  "kernel-settings": "A11, EROFS EACCES ENOENT, kernel",
  "system-files": "A11, EROFS EACCES ENOENT, kernel",
  "kernel-memory": "A11, ENODATA ENOENT EACCES, kernel",
  firmware: "A11, nothing, kernel",
  "kernel-log": "A12, EPERM, kernel",
  mounts: "A13, EPERM, kernel",
  namespaces: "A13, EPERM, kernel",
  "other-root": "A13, EPERM, unless rootCapabilities, kernel",
  "control-groups": "A27, EROFS EACCES ENOENT, kernel",
  "raw-packets": "N4, EPERM, unless capabilities",
  "kernel-keys": "N6, EPERM, kernel",
  "kernel-programs": "N7, EPERM, kernel",
  "performance-events": "N7, EPERM, kernel",
  "trace-first-process": "N13, EPERM",
  lease: "L1, EPERM, unless filter",
  "kernel-events": "L3, EPROTONOSUPPORT, unless filter, kernel",
  "interface-changes": "L3, EPERM, kernel",
  "device-in-workspace": "A14, EPERM EROFS, unless capabilities",
  "system-write": "B1, EROFS EACCES, unless rootfs",
  "workspace-change": "B2, EROFS, unless workspace",
  "writable-places": "B4, nothing, unless rootfs",
  "memory-without-size": "B5, nothing, unless rootfs",
  "programs-in-scratch-space": "B6, EACCES, unless rootfs or scratchPrograms",
  "mount-propagation": "B8, nothing",
  "protected-names": "B11, EROFS EBUSY EXDEV, unless protection",
  "processes-without-limit": "F1, EAGAIN",
  "files-without-limit": "F19, nothing, unless rootfs",
  "metadata-service": "A16, ENETUNREACH EADDRNOTAVAIL, control by nobody, unless network",
  "metadata-service-6": "A16, ENETUNREACH EADDRNOTAVAIL, control by nobody, unless network",
  interfaces: "E1, nothing, unless network",
  "host-address": "E2, ENETUNREACH EADDRNOTAVAIL, unless network",
  "public-addresses": "E2, ENETUNREACH EADDRNOTAVAIL, control by nobody, unless network",
  "public-addresses-6": "E2, ENETUNREACH EADDRNOTAVAIL, control by nobody, unless network",
  "name-lookup": "E3, EAI_AGAIN EAI_NONAME, control by nobody, unless network",
  "datagram-out": "E3, ENETUNREACH EADDRNOTAVAIL, control by nobody, unless network",
  "host-loopback": "E4, ECONNREFUSED",
  "host-loopback-datagram": "E4, ECONNREFUSED",
};

function promiseOf(attempt: Attempt): string {
  const { id, refusals, control, controlAnswer, permittedBy = [], concernsKernel = false } = attempt;
  const by = typeof control === "object" ? "nobody" : control;
  return [
    ...[id, refusals.join(" ")],
    ...(by === undefined ? [] : [`control by ${by}`]),
    ...(controlAnswer === undefined ? [] : [`control ${controlAnswer}`]),
    ...(permittedBy.length === 0 ? [] : [`unless ${permittedBy.join(" or ")}`]),
    ...(concernsKernel ? ["kernel"] : []),
  ].join(", ");
}

/** Made where the policy says that files can be made, and judged by nobody. */
const CHECK = "places-that-stopped-being-writable";

describe("the attempts", () => {
  it("have to be refused as it is promised", () => {
    expect(Object.fromEntries(allAttempts.map((one) => [one.attempt, promiseOf(one)]))).toEqual(promises);
    expect(allAttempts).toHaveLength(Object.keys(promises).length);
  });

  it("are those of the program that makes them", async () => {
    const directory = join(packageRoot, "images/toolbox/attempts");
    const sources = (await readdir(directory)).filter((name) => name.endsWith(".c"));
    const texts = await Promise.all(sources.map((name) => readFile(join(directory, name), "utf8")));
    const names = texts.flatMap((text) => [...text.matchAll(/\.name = "([^"]+)"/g)].map(([, name]) => name));
    expect(names.toSorted()).toEqual([...allAttempts.map(({ attempt }) => attempt), CHECK].toSorted());
  });

  it("are shown in groups, the host first and the network last", () => {
    expect(attemptGroups.map(({ title, attempts }) => [title.split(" ")[1], attempts[0]?.attempt])).toEqual([
      ["host:", "engine-socket"],
      ["kernel:", "kernel-settings"],
      ["and", "device-in-workspace"],
      ["network", "metadata-service"],
    ]);
  });

  it("each say what holds, and what a command can do otherwise", () => {
    for (const { title, meaning } of allAttempts) {
      expect(title).toMatch(/^\S+ .+[^.]$/);
      expect(meaning).toMatch(/^(?:a command|commands|what|whoever) .+[^.]$/);
    }
    expect(new Set(allAttempts.map(({ title }) => title)).size).toBe(allAttempts.length);
  });
});

describe("an outcome", () => {
  const refusals = ["EPERM", "EROFS"];

  it.each([
    ["EPERM", true],
    ["EROFS EPERM EROFS", true],
    ["EPERM done", false],
    ["EACCES", false],
    ["EPERM ", false],
    ["EPERM\nEPERM", false],
    ["", false],
    [undefined, false],
  ])("%j is made of nothing but refusals: %s", (outcome, expected) => {
    expect(isRefused({ refusals }, outcome)).toBe(expected);
  });

  const attempt = { attempt: "x", refusals } as unknown as Attempt;

  it.each([
    ["done", true],
    ["found /dev/kmsg", true],
    ["found", false],
    ["done.", false],
    ["not done", false],
    ["not found it", false],
    ["EPERM", false],
    ["", false],
    [undefined, false],
  ])("%j of a control is success: %s", (outcome, expected) => {
    expect(controlSucceeded(attempt, outcome)).toBe(expected);
  });

  it("of a control is success only with the answer that is asked for, if one is", () => {
    const special = { ...attempt, controlAnswer: "ETXTBSY" };
    expect(controlSucceeded(special, "ETXTBSY")).toBe(true);
    for (const outcome of ["done", "ETXTBSY EPERM", undefined])
      expect(controlSucceeded(special, outcome)).toBe(false);
  });
});
