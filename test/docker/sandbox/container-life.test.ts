import { onTestFinished } from "vitest";
import { describeContainerLife } from "../../contract/container-life.js";
import { openTestSandbox } from "../../support/sandbox.js";

describeContainerLife("a real engine", async () => {
  const opened = await openTestSandbox();
  onTestFinished(async () => await opened[Symbol.asyncDispose]());
  const { engine, id, containerId } = opened.sandbox;
  return { engine, sessionId: id, id: containerId };
});
