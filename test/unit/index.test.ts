import { expect, it } from "vitest";
import * as brig from "../../src/index.js";

it("the package exports these names and no others", () => {
  expect(Object.keys(brig).sort()).toEqual([
    "BrigError",
    "Sandbox",
    "createResponsesClient",
    "createScriptedClient",
    "createToolRegistry",
    "isBrigError",
    "loadScript",
    "openSessionFile",
    "runAgent",
  ]);
});
