// Checks that a lock file pins every package: each needs the hash of its archive, since npm would otherwise install anything that a
// registry sends, and may only come from the public registry. The argument is the file to check; default: this checkout's.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const file = process.argv[2] ?? fileURLToPath(new URL("../package-lock.json", import.meta.url));
const { packages } = JSON.parse(await readFile(file, "utf8"));

const faults = Object.entries(packages)
  .filter(([path]) => path !== "")
  .flatMap(([path, entry]) => faultsOf(entry).map((fault) => `${path}: ${fault}`));
for (const fault of faults) console.error(`${file}: ${fault}`);
if (faults.length > 0)
  console.error("create it again: rm package-lock.json && npm install --package-lock-only");
process.exitCode = faults.length > 0 ? 1 : 0;

function faultsOf({ integrity, resolved }) {
  return [
    ...(/^sha512-/.test(integrity ?? "") ? [] : ["has no sha512 integrity"]),
    ...(resolved === undefined || resolved.startsWith("https://registry.npmjs.org/")
      ? []
      : [`comes from ${resolved}`]),
  ];
}
