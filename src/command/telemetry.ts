import type { Config } from "../agent/index.js";
import { telemetrySettings } from "../agent/index.js";
import { neutralise } from "../lib/terminal/terminal.js";
import type { CliContext } from "./context.js";
import { say } from "./render.js";

/**
 * Sends spans and measurements of agents until the program ends, if the environment or the configuration names a collector.
 * Otherwise nothing is loaded.
 */
export async function startTelemetry(
  config: Pick<Config, "otel">,
  { environment, stderr, beforeEnd }: Pick<CliContext, "environment" | "stderr" | "beforeEnd">,
): Promise<void> {
  const { settings, warnings } = telemetrySettings(config, environment);
  for (const warning of warnings) await say(stderr, `brig: ${neutralise(warning)}\n`);
  if (settings === null) return;
  const [{ exportTelemetry }, { readProxies }] = await Promise.all([
    import("../agent/index.js"),
    import("../lib/proxy/proxies.js"),
  ]);
  const opened = exportTelemetry(settings, { proxies: readProxies(environment.variables) });
  beforeEnd(async () => {
    const trouble = (await opened?.close()) ?? null;
    return trouble === null ? null : `brig: telemetry was lost: ${neutralise(trouble)}\n`;
  });
}
