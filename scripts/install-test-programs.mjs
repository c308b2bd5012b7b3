// Installs programs that brig is tested and measured with: those that are named, or all but the large ones. A test installs what it needs
// when it runs, so this is for a machine that soon has no network, and for the large ones. BRIG_TEST_ALL_AGENTS=1 adds these to all.
import { installProgram } from "./test-programs/install.js";
import { programs } from "./test-programs/programs.js";

const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(programs, name));
if (unknown.length > 0) {
  process.stderr.write(`there is no ${unknown.join(", ")}; there are ${Object.keys(programs).join(", ")}\n`);
  process.exit(2);
}
const withLarge = process.env.BRIG_TEST_ALL_AGENTS === "1";
const all = Object.keys(programs).filter((name) => withLarge || !programs[name].large);
for (const name of named.length > 0 ? named : all)
  if ((await installProgram(name)) === null && named.length > 0) process.exitCode = 1;
