import { constants } from "node:os";
import { array, nullish, object, read, record, string } from "../../../lib/json/json-shape.js";
import type { CreatedContainer } from "../engine-types.js";

const strings = nullish(array(string));

/** The settings of a container that an image can influence. */
const createdReply = object({
  Image: string,
  Config: object({
    Entrypoint: strings,
    Cmd: strings,
    User: nullish(string),
    WorkingDir: nullish(string),
    Env: strings,
    Labels: nullish(record(string)),
    StopSignal: nullish(string),
    Healthcheck: nullish(object({ Test: strings })),
  }),
});

export function parseCreated(reply: unknown): CreatedContainer {
  const { Image, Config } = read(createdReply, reply);
  return {
    imageId: Image,
    entrypoint: Config.Entrypoint ?? [],
    cmd: Config.Cmd ?? [],
    user: Config.User ?? "",
    workingDir: Config.WorkingDir ?? "",
    env: Config.Env ?? [],
    labels: Config.Labels ?? {},
    stopSignal: signalName(Config.StopSignal ?? ""),
    healthcheck: Config.Healthcheck?.Test ?? [],
  };
}

/** Podman answers with the number. */
function signalName(signal: string): string {
  return Object.entries(constants.signals).find(([, number]) => String(number) === signal)?.[0] ?? signal;
}
