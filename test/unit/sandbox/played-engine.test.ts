import { describeContainerLife } from "../../contract/container-life.js";
import { playedPlace } from "./played-sandbox.js";

describeContainerLife("an engine that is played", async () => {
  const { engine, open } = await playedPlace();
  const { plan } = await open();
  return { engine: engine.asEngine, sessionId: plan.sessionId, id: engine.container.id };
});
