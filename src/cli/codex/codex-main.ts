#!/usr/bin/env node
import { openHost } from "../host.js";
import { runInProcess } from "../run-in-process.js";
import { runCodexProgram } from "./codex-program.js";

// The global, because importing node:process evaluates all of its getters, which takes longer than the rest of
// this file.
const host = openHost(process);
// Everything is closed by now; an open stdin would still keep the process alive.
process.exit(await runInProcess(host, () => runCodexProgram(process.argv.slice(2), host)));
