import type { Command } from "commander";
import type { ConfigFlags } from "../../command/index.js";

export interface QueueFlags {
  queue: string;
  results: string;
  redisCa: string;
}

export interface WorkerFlags extends Partial<QueueFlags>, ConfigFlags {
  concurrency?: number;
  lease: number;
  offline?: boolean;
  json?: boolean;
}

/** Adds the options for reaching a queue. `results` is left out where no results are stored or fetched. */
export function addQueueOptions(command: Command, texts: { queue: string; results?: string }): Command {
  command.option("--queue <url>", texts.queue);
  if (texts.results !== undefined) command.option("--results <place>", texts.results);
  return command.option(
    "--redis-ca <file>",
    "certificates in PEM that sign the one of a Redis server with TLS",
  );
}
