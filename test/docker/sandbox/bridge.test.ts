import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { testEngine } from "../../support/engine.js";
import type { BreakableSandbox } from "../../support/open-sandbox.js";
import { changedPolicy } from "../../support/policies.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

/** For five seconds kills every process that the engine has put here beside PID 1, and notes what the kernel says. */
const killBridges = `
import os, time
end = time.monotonic() + 5
answers = open("/tmp/answers", "a", buffering=1)
def comes_from_outside(pid):
    try:
        with open("/proc/%d/stat" % pid) as stat: return stat.read().rsplit(")", 1)[1].split()[1] == "0"
    except OSError: return False
while time.monotonic() < end:
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        if pid == 1 or not comes_from_outside(pid): continue
        try: os.kill(pid, 9); answers.write("killed\\n")
        except PermissionError: answers.write("refused\\n")
        except ProcessLookupError: pass
`;

/** The engine without the user that a bridge is to have. */
function forgetfulEngine(engine: Engine): Engine {
  const openExec: Engine["openExec"] = (id, argv) => engine.openExec(id, argv);
  return Object.assign(Object.create(engine) as Engine, { openExec });
}

describe.skipIf(differs("runner.unkillable"))(
  titled("runner.unkillable", "a process that kills each bridge to the runner"),
  () => {
    for (const user of ["0:0", "1234:4321"]) {
      const answersTo = async (open: (engine: Engine) => Promise<BreakableSandbox>, engine: Engine) => {
        const sandbox = await open(engine);
        const killer = await sandbox.spawn(["python3", "-c", killBridges]);
        for (let i = 0; i < 5; i++) {
          await sleep(300);
          sandbox.link.breakStream();
        }
        expect((await killer.exit).exitCode).toBe(0);
        const lines = String(await sandbox.files.read("/tmp/answers")).split("\n");
        return new Set(lines.filter(Boolean));
      };
      sandboxTest(
        user === "0:0"
          ? "as root can hold up a stream, but not for longer than it tries"
          : "as an ordinary user is refused, and is not where the bridge has its user",
        async ({ open, directory }) => {
          const policyFile = await changedPolicy(directory, { user });
          const opening = (engine: Engine) => open({ engine, workspaceKind: "none", policyFile });
          const engine = await testEngine();
          const [answers, unprotected] = await Promise.all([
            answersTo(opening, engine),
            answersTo(opening, forgetfulEngine(engine)),
          ]);
          // The engine begins every process as root, so root inside can end it before it is a bridge. SECURITY.md says so.
          if (user !== "0:0") expect(answers).toEqual(new Set(["refused"]));
          expect(unprotected).toContain("killed");
        },
      );
    }
  },
);
