import { readFileSync } from "node:fs";
import { release, totalmem } from "node:os";
import { describe, expect, it } from "vitest";
import { isLocal, measureMachine } from "../../../../../src/batch/runs/admission/admission.js";
import type { Engine, EngineInfo } from "../../../../../src/sandbox/docker/engine-types.js";

const total = Number(/^MemTotal:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "latin1"))?.[1]) * 1024;

function engine(changes: Partial<EngineInfo> = {}, endpoint = "unix:///var/run/docker.sock"): Engine {
  const info = { cpus: 3, memoryBytes: total, kernel: release(), dockerRootDir: "/", ...changes };
  return { endpoint, info: async () => info } as Partial<Engine> as Engine;
}

describe("the machine of the engine", () => {
  it("is measured by its kernel where that is this one", async () => {
    const machine = await measureMachine(engine());
    expect(machine).toMatchObject({ cpus: 3, memoryBytes: total });
    expect(machine.availableMemoryBytes).toBeGreaterThan(0);
    expect(machine.availableMemoryBytes).toBeLessThanOrEqual(totalmem());
    expect(machine.freeDiskBytes).toBeGreaterThanOrEqual(0);
  });

  it("is only asked of the engine where that has another kernel, or is reached over the network", async () => {
    for (const far of [
      engine({ kernel: "6.6.12-linuxkit" }),
      engine({ memoryBytes: total / 2 }),
      engine({}, "tcp://10.0.0.1:2376"),
    ]) {
      expect(await isLocal(far)).toBe(false);
      expect(await measureMachine(far)).toMatchObject({ availableMemoryBytes: null, freeDiskBytes: null });
    }
  });

  it("has an unknown disk where the engine's directory cannot be seen", async () => {
    expect(await measureMachine(engine({ dockerRootDir: "/proc/nonexistent/docker" }))).toMatchObject({
      freeDiskBytes: null,
      memoryBytes: total,
    });
  });
});
