import "./interpreted-schemas.js";
import { commands } from "./command-list.js";
import { showWarnings } from "./display/process-warnings.js";
import { openHost } from "./host.js";
import { runProgram } from "./program.js";
import { runInProcess } from "./run-in-process.js";

// The global, because importing node:process evaluates all of its getters, which takes longer than the rest
// of this file.
showWarnings(process);
const host = openHost(process);
const ended = runInProcess(host, () => runProgram(process.argv.slice(2), { context: host, commands }));
// Everything is closed by then; an open stdin would still keep the process alive. Not awaited, because the
// program is bundled as CommonJS, which cannot wait here.
void ended.then((status) => process.exit(status));
