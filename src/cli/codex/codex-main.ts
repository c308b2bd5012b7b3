#!/usr/bin/env node
import { openHost } from "../host.js";
import { runInProcess } from "../run-in-process.js";
import { runCodexProgram } from "./codex-program.js";

// As in main.ts, this uses the global process, and ends it even if stdin is still open.
const host = openHost(process);
process.exit(await runInProcess(host, () => runCodexProgram(process.argv.slice(2), host)));
