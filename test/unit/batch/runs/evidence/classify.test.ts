import { describe, expect, it } from "vitest";
import { classifyFailure, type Facts, parseMemoryKill } from "../../../../../src/batch/runs/evidence.js";
import { UnhealthyContainer } from "../../../../../src/batch/runs/place/prepare-environment.js";
import { BrigError, type ErrorCode, type GoneReason } from "../../../../../src/errors.js";

const id = "c0ffee".padEnd(64, "0");
const gone = (reason: GoneReason) => new BrigError("the sandbox ended", { code: "sandbox.gone", reason });
const failed = (code: ErrorCode, message = "it failed", cause?: unknown) =>
  new BrigError(message, { code, cause });
const ended = { id, running: false, exitCode: 137, oomKilled: false, error: "" };
const roomy = { totalBytes: 16e9, availableBytes: 8e9, stalledPercent: 0.5 };
const byOwnLimit = { isByLimit: true, limitedGroup: `/docker/${id}`, group: `/docker/${id}` };

function facts(changes: Partial<Facts>): Facts {
  return {
    stage: "agent",
    events: ["create", "start", "die"],
    error: gone("killed"),
    engineError: null,
    container: ended,
    kills: null,
    memoryLimitBytes: 2e9,
    memory: roomy,
    freeDiskBytes: 1e12,
    ...changes,
  };
}

/** The class of an infrastructure failure, or the kind of another cause. */
function causeOf(changes: Partial<Facts>): string | null {
  const cause = classifyFailure(facts(changes));
  return cause?.kind === "infrastructure" ? cause.class : (cause?.kind ?? null);
}

describe("the cause of a failure", () => {
  it("is the engine, if it does not answer, or failed and answers again", () => {
    expect(causeOf({ engineError: "connection refused" })).toBe("engine-gone");
    expect(causeOf({ error: gone("engine") })).toBe("engine-gone");
    expect(causeOf({ error: failed("engine.unreachable") })).toBe("engine-gone");
    expect(causeOf({ error: failed("engine.failed") })).toBe("engine-gone");
  });

  it("is the task's own limit, if the kernel says so, whatever memory the machine has", () => {
    const scarce = { ...roomy, availableBytes: 1e8 };
    expect(causeOf({ kills: [byOwnLimit], memory: scarce })).toBe("memory-limit");
    expect(causeOf({ kills: [byOwnLimit], container: { ...ended, oomKilled: true } })).toBe("memory-limit");
  });

  it("is the machine's memory, if the kernel says so, or a limit above that of the container", () => {
    const global = { isByLimit: false, limitedGroup: null, group: `/docker/${id}` };
    expect(causeOf({ kills: [byOwnLimit, global] })).toBe("host-out-of-memory");
    expect(causeOf({ kills: [{ ...byOwnLimit, limitedGroup: "/docker" }] })).toBe("host-out-of-memory");
  });

  it("is judged by what the machine has left, if the kernel's log cannot be read", () => {
    const scarce = { ...roomy, availableBytes: 1e8 };
    const killed = { ...ended, oomKilled: true };
    expect(causeOf({ container: killed })).toBe("memory-limit");
    expect(causeOf({ container: killed, memory: null })).toBe("memory-limit");
    expect(causeOf({ container: killed, memory: scarce })).toBe("host-out-of-memory");
    expect(causeOf({ container: null, error: gone("oom") })).toBe("memory-limit");
    expect(causeOf({ container: null, error: gone("oom"), memory: scarce })).toBe("host-out-of-memory");
  });

  it("is not an earlier kill of one command, if the container ended otherwise", () => {
    expect(causeOf({ kills: [byOwnLimit], container: { ...ended, exitCode: 1 } })).toBe("own-doing");
    expect(causeOf({ kills: [byOwnLimit], events: ["start", "kill", "die"] })).toBe("sandbox-gone");
  });

  it("is what runs in the container, unless somebody outside is known to have ended it", () => {
    expect(causeOf({})).toBe("own-doing");
    expect(causeOf({ container: { ...ended, running: true }, events: ["start"] })).toBe("own-doing");
    expect(causeOf({ events: ["create", "start", "kill", "die", "start", "die"] })).toBe("own-doing");
    for (const event of ["kill", "stop"])
      expect(causeOf({ events: ["create", "start", event, "die"] })).toBe("sandbox-gone");
    expect(causeOf({ container: "removed" })).toBe("sandbox-gone");
    expect(causeOf({ error: gone("lease") })).toBe("sandbox-gone");
    expect(causeOf({ error: gone("restarted"), container: { ...ended, running: true } })).toBe(
      "sandbox-gone",
    );
    expect(causeOf({ events: null })).toBe("sandbox-gone");
  });

  it("is the engine, if it does not remember how the container ended", () => {
    expect(causeOf({ events: [] })).toBe("engine-gone");
  });

  it("is judged by the stage where nothing else is known", () => {
    const verify = { stage: "verify", container: null, events: null } as const;
    expect(causeOf({ error: failed("engine.failed"), stage: "image" })).toBe("image-failed");
    expect(causeOf({ error: failed("image.build-failed"), stage: "image" })).toBe("image-failed");
    expect(causeOf({ error: failed("engine.failed"), ...verify })).toBe("verifier-start-failed");
    expect(causeOf({ error: failed("policy.not-enforced"), ...verify })).toBe("verifier-start-failed");
    expect(causeOf({ error: gone("killed"), ...verify })).toBe("verifier-start-failed");
    expect(causeOf({ error: failed("policy.not-enforced") })).toBeNull();
    expect(causeOf({ error: new UnhealthyContainer("sick") })).toBe("healthcheck-failed");
  });

  it("is a full disk, by errno, by the engine's words, or by what is left", () => {
    const errno = Object.assign(new Error("write failed"), { code: "ENOSPC" });
    expect(causeOf({ error: errno })).toBe("disk-full");
    expect(causeOf({ error: failed("session.invalid", "cannot write", errno) })).toBe("disk-full");
    const engines = new BrigError("cannot create", { code: "engine.failed", errno: "ENOSPC" });
    expect(causeOf({ error: engines })).toBe("disk-full");
    expect(causeOf({ freeDiskBytes: 1e6 })).toBe("disk-full");
  });

  it("is no full disk only because a message mentions one", () => {
    expect(causeOf({ error: failed("model.failed", "ENOSPC: no space left on device") })).toBeNull();
  });

  it("is the model's endpoint for its errors", () => {
    for (const code of ["model.auth", "model.quota", "model.rate-limit", "model.unreachable"] as const)
      expect(causeOf({ error: failed(code) })).toBe("model-endpoint");
  });

  it("is unknown for everything else, such as brig's own mistakes", () => {
    expect(causeOf({ error: new TypeError("x is undefined") })).toBeNull();
    expect(causeOf({ error: failed("exec.invalid"), freeDiskBytes: 1e6 })).toBeNull();
  });

  it("comes with what the engine and the kernel said", () => {
    const cause = classifyFailure(
      facts({ kills: [byOwnLimit], container: { ...ended, oomKilled: true, error: "OCI error" } }),
    );
    expect(cause?.evidence).toEqual([
      "sandbox.gone: the sandbox ended",
      "container: exit code 137, killed for want of memory, OCI error",
      "events: create, start, die",
      `kernel: a process was killed at the memory limit of /docker/${id}`,
      expect.stringMatching(/^memory limit: /),
      expect.stringMatching(/^machine: .* available, 0.5 % of the time stalled$/),
      expect.stringMatching(/^disk: .* free$/),
    ]);
  });
});

describe("a record of the kernel's log", () => {
  const record = (rest: string) => `6,1234,99,-;oom-kill:${rest}`;

  it("tells of a kill by a limit, and of one by the machine", () => {
    expect(
      parseMemoryKill(
        record(
          `constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${id},mems_allowed=0-1,3,oom_memcg=/docker/${id},task_memcg=/docker/${id}/x,task=python,pid=5,uid=0`,
        ),
      ),
    ).toEqual({ isByLimit: true, limitedGroup: `/docker/${id}`, group: `/docker/${id}/x` });
    expect(
      parseMemoryKill(
        record(
          "constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/docker/x,task=a,pid=5,uid=0",
        ),
      ),
    ).toEqual({ isByLimit: false, limitedGroup: null, group: "/docker/x" });
  });

  it("is not believed where a program can choose the words", () => {
    const start =
      "constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/docker/x";
    expect(parseMemoryKill(record(`${start},task=,task_memcg=/y,pid=5,uid=0`))?.group).toBe("/docker/x");
    expect(parseMemoryKill(`4,1,1,-;python: oom-kill:${start},task=x,pid=1`)).toBeNull();
    expect(parseMemoryKill("6,1,1,-;usb 1-1: new device")).toBeNull();
  });
});
