import { expect, it } from "vitest";
import { ATTEMPTS_PROGRAM, openHostTargets, openWeakTwin } from "../../../src/sandbox/attack/weak-twin.js";
import { requireToolbox } from "../../../src/sandbox/images/require-toolbox.js";
import { testEngine } from "../../support/engine.js";
import { testLabels } from "../../support/test-run.js";

it("the container without protection does not wait for a program that never ends", async () => {
  const engine = await testEngine();
  await using targets = await openHostTargets(engine.endpoint);
  const toolbox = await requireToolbox(engine);
  const open = (execMs: number) =>
    openWeakTwin(engine, {
      ...{ image: "brig/base", targets, limits: { memoryBytes: 2 ** 30, pids: 64 }, labels: testLabels() },
      ...{ toolbox, execMs },
    });
  // A busy machine may need more than 1.5 s even for what prepares the container, which has the same limit.
  await using twin = await open(1500).catch(() => open(30_000));
  await expect(twin.exec([ATTEMPTS_PROGRAM, "wait", "300"])).rejects.toThrow(
    /^\/\.brig\/attempts did not end within (?:1\.5|30) s$/,
  );
});
