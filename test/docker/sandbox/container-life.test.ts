import { onTestFinished } from "vitest";
import { describeContainerLife } from "../../contract/container-life.js";
import { differs } from "../../support/runtime-differences.js";
import { openTestSandbox } from "../../support/sandbox.js";

const open = async () => {
  const opened = await openTestSandbox();
  onTestFinished(async () => await opened[Symbol.asyncDispose]());
  const { engine, id, containerId } = opened.sandbox;
  return { engine, sessionId: id, id: containerId };
};

describeContainerLife("a real engine", open, { logsRemovals: !differs("ended.removed") });
