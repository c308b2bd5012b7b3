import "../interpreted-schemas.js";
import { showWarnings } from "../display/process-warnings.js";
import { openHost } from "../host.js";
import { runInProcess } from "../run-in-process.js";
import { runCodexProgram } from "./codex-program.js";

// As main.ts does, this uses the global process, does not await, and ends the process even if stdin is still
// open.
showWarnings(process);
const host = openHost(process);
void runInProcess(host, () => runCodexProgram(process.argv.slice(2), host)).then((status) =>
  process.exit(status),
);
