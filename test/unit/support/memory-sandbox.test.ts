import { describeToolSandbox } from "../../contract/tool-sandbox.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

describeToolSandbox("MemorySandbox", () => Promise.resolve(new MemorySandbox()));
