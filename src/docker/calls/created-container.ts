import * as z from "zod";
import type { CreatedContainer } from "../engine-types.js";

const strings = z.array(z.string()).nullish();

/** The settings of a container that an image can influence. */
export const createdContainer = z
  .object({
    Image: z.string(),
    Config: z.object({
      Entrypoint: strings,
      Cmd: strings,
      User: z.string().nullish(),
      WorkingDir: z.string().nullish(),
      Env: strings,
      Labels: z.record(z.string(), z.string()).nullish(),
      StopSignal: z.string().nullish(),
      Healthcheck: z.object({ Test: strings }).nullish(),
    }),
  })
  .transform(
    ({ Image, Config }): CreatedContainer => ({
      imageId: Image,
      entrypoint: Config.Entrypoint ?? [],
      cmd: Config.Cmd ?? [],
      user: Config.User ?? "",
      workingDir: Config.WorkingDir ?? "",
      env: Config.Env ?? [],
      labels: Config.Labels ?? {},
      stopSignal: Config.StopSignal ?? "",
      healthcheck: Config.Healthcheck?.Test ?? [],
    }),
  );
