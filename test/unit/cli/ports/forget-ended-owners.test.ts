import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { forgetEndedOwners } from "../../../../src/cli/ports/forget-ended-owners.js";
import { openControlRecords } from "../../../../src/command/ports/control-records.js";
import { recordPort } from "../../../../src/sandbox/network/port-records.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const sandbox = "8a2f1c7e-4b65-4a53-9f44-1a2b3c4d5e6f";
const owned = { sandbox, session: null, command: "npm run dev", workingDirectory: "/repo" };
/** No process of Linux has this number. */
const NOBODY = 4_194_305;

/** Has a home in which this process and one that was killed each have a record of both kinds. */
async function homeWithRecords() {
  const home = await temporaryDirectory();
  await recordPort(home.path, { ...owned, sandboxPort: 3000, port: 8080, url: "http://127.0.0.1:8080" });
  const { records } = await openControlRecords(home.path);
  await records.add(7, { ...owned, address: "/run/user/1/brig", token: "a".repeat(64) });
  for (const kind of ["control", "ports"]) {
    const directory = join(home.path, kind);
    const [name = ""] = await readdir(directory);
    const record = JSON.parse(await readFile(join(directory, name), "utf8"));
    const ofKilled = { ...record, owner: { ...record.owner, pid: NOBODY } };
    await writeFile(join(directory, `${NOBODY}.9.json`), JSON.stringify(ofKilled));
  }
  return home;
}

const numbersIn = async (home: string, kind: string) =>
  (await readdir(join(home, kind))).map((name) => name.split(".").slice(0, 2).join("."));

it("what killed processes have left goes, and what living ones have stays", async () => {
  await using home = await homeWithRecords();
  await forgetEndedOwners(home.path);
  expect(await numbersIn(home.path, "control")).toEqual([`${process.pid}.7`]);
  expect(await numbersIn(home.path, "ports")).toEqual([`${process.pid}.8080`]);
});

it("records that are not to be read keep none of the others", async () => {
  await using home = await homeWithRecords();
  await chmod(join(home.path, "control"), 0o755);
  await forgetEndedOwners(home.path);
  expect(await numbersIn(home.path, "control")).toContain(`${NOBODY}.9`);
  expect(await numbersIn(home.path, "ports")).toEqual([`${process.pid}.8080`]);
});

it("a home without records is no error, and gets none", async () => {
  await using home = await temporaryDirectory();
  await forgetEndedOwners(home.path);
  await forgetEndedOwners(join(home.path, "missing"));
  expect(await readdir(home.path)).toEqual([]);
});
