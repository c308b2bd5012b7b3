import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { defineServe as defineServeWith } from "../serve/serve-command.js";
import { E2bService } from "./e2b-service.js";

/** `brig serve`, which serves clients of E2B as well. */
export function defineServe(command: Command, context: CliContext): void {
  defineServeWith(command, context, (parts) => [new E2bService(parts)]);
}
