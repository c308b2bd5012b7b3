#!/usr/bin/env node
import process from "node:process";
import { commands } from "./commands.js";
import { describeError } from "./errors.js";
import { openHost } from "./host.js";
import { runProgram } from "./program.js";
import { flush, write } from "./render.js";

const host = openHost(process);
const failure = await runProgram(process.argv.slice(2), { context: host, commands });
// Whoever interrupts does not want to wait for a reader that has stopped reading.
if (host.interruption() === null) await flush(host.stdout);
const lost = host.outputFailure();
if (failure === null && lost?.isQuiet === false)
  await write(host.stderr, describeError(lost.error, { showsCauses: false }));
await flush(host.stderr);
// Everything is closed by now; an open stdin alone would keep the process alive.
process.exit(failure ?? lost?.exitStatus ?? host.exitStatus());
