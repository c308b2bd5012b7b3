import { expect, it } from "vitest";
import {
  appliesSeccomp,
  ignoresCgroups,
  looksLikeGvisor,
  runtimeOf,
} from "../../../../../src/sandbox/docker/diagnosis/gvisor.js";
import type { EngineRuntime } from "../../../../../src/sandbox/docker/engine-types.js";

function runtime(name: string, program: string | null = null, args: string[] | null = []): EngineRuntime {
  return { name, program, args };
}

it.each([
  ["by its program", runtime("boxed", "/opt/gvisor-24/bin/runsc"), true],
  ["by a program with a version", runtime("boxed", "/opt/runsc24"), true],
  ["by the type of its shim", runtime("boxed", "io.containerd.runsc.v1", null), true],
  ["by a name that the engine does not list", runtime("io.gvisor.runsc.v1"), true],
  ["by its name, behind a script that does not tell", runtime("gvisor-kvm", "/usr/local/bin/start"), true],
  ["not by its name, where the program is runc", runtime("runsc", "/usr/bin/runc"), false],
  ["not by a directory", runtime("boxed", "/opt/gvisor/start"), false],
  ["not by a part of another word", runtime("notrunscatall", "/usr/bin/runscript"), false],
  ["not at all", runtime("runc", "runc"), false],
  ["not at all", runtime("kata-runtime", "io.containerd.kata.v2", null), false],
])("a runtime looks like gVisor %s: %o", (_how, given, expected) => {
  expect(looksLikeGvisor(given)).toBe(expected);
});

it("goes by the default runtime when none was asked for, and by the name alone of one the engine does not list", () => {
  const runtimes = [runtime("runc", "runc"), runtime("boxed", "/opt/runsc")];
  expect(runtimeOf({ runtimes, defaultRuntime: "boxed" }, null)).toBe(runtimes[1]);
  expect(runtimeOf({ runtimes, defaultRuntime: "boxed" }, "runc")).toBe(runtimes[0]);
  expect(runtimeOf({ runtimes, defaultRuntime: "runc" }, "other")).toEqual(runtime("other", null, null));
});

it.each([
  [["--oci-seccomp"], true],
  [["-oci-seccomp=true"], true],
  [["--oci-seccomp", "--oci-seccomp=false"], false],
  [["--oci-seccomp-not"], false],
  [["--platform=oci-seccomp"], false],
  [null, false],
])("gVisor started with %o loads filters: %s", (args, expected) => {
  expect(appliesSeccomp(runtime("runsc", "/usr/bin/runsc", args))).toBe(expected);
});

it("says that limits are ignored only where the engine tells what the runtime is started with", () => {
  expect(ignoresCgroups(runtime("runsc", "/usr/bin/runsc", ["--ignore-cgroups"]))).toBe(true);
  expect(ignoresCgroups(runtime("runsc", "/usr/bin/runsc", []))).toBe(false);
  expect(ignoresCgroups(runtime("runsc", "io.containerd.runsc.v1", null))).toBe(null);
});
