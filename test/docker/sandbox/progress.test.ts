import { expect } from "vitest";
import { sandboxTest } from "../../support/sandbox.js";

sandboxTest("a start reports each of its stages", async ({ open }) => {
  const stages: string[] = [];
  await open({ onProgress: (stage) => stages.push(stage) });
  expect(stages).toEqual([
    "looking at the image and the workspace",
    "starting the container",
    "checking the policy inside",
  ]);
});
