#!/usr/bin/env node
import { commands } from "./command-list.js";
import { openHost } from "./host.js";
import { runProgram } from "./program.js";
import { runInProcess } from "./run-in-process.js";

// The global, because importing node:process evaluates all of its getters, which takes longer than the rest
// of this file.
const host = openHost(process);
// Everything is closed by now; an open stdin would still keep the process alive.
process.exit(await runInProcess(host, () => runProgram(process.argv.slice(2), { context: host, commands })));
