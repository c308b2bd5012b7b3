import { fileURLToPath } from "node:url";
import { fullTable } from "./tables.js";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const resultsDirectory = fileURLToPath(new URL("../../test/engines", import.meta.url));

/** The documents that have a table of engines, and which. */
export const documents = [{ file: "docs/engines.md", table: fullTable }];
